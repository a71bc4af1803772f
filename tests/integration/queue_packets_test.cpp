// SPDX-License-Identifier: BSL-1.0
// Packets of other programs, and limits of descriptors.
#include "descriptor_limit.hpp"
#include "group_test.hpp"
#include "raw_queue.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace queue_packets_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::queue;
using cohort::queue_reader;
using cohort::shared_array;

TEST_CASE("queue packets: packets of other programs are taken if they are well-formed") {
    const leak_guard guard;
    raw_queue<std::string> raw;
    send_raw(raw.writer, header_with(1, 0, 5), "hello");
    CHECK(*raw.reader.get() == "hello");
    const int memory = memory_of(5000, 5000);
    send_raw(raw.writer, header_with(2, 1, 4500), "", {memory});
    ::close(memory);
    CHECK(*raw.reader.get() == std::string(4500, 'x'));
    raw.whole.close();
    CHECK(raw.reader.get().ended());
}

TEST_CASE("queue packets: a payload up to a quarter of the send buffer is inside its packet") {
    const leak_guard guard;
    raw_queue<std::string> raw;
    int buffer = 0;
    socklen_t length = sizeof buffer;
    REQUIRE(::getsockopt(raw.writer, SOL_SOCKET, SO_SNDBUF, &buffer, &length) == 0);
    const int reader = *cohort::item_to_share(raw.reader).lent.lock();
    const auto limit = static_cast<std::size_t>(buffer) / 4;
    for (const auto size : {limit - 1, limit, limit + 1}) {
        const std::string sent(size, 'x');
        raw.whole.writer().put(sent);
        raw_header seen;
        REQUIRE(::recv(reader, &seen, sizeof seen, MSG_PEEK) == sizeof seen);
        CHECK(seen.kind == (size <= limit ? 1 : 2));
        CHECK(seen.size == size);
        CHECK((*raw.reader.get() == sent));
    }
}

TEST_CASE("queue packets: packets that are none are a codec_error, and the next one is good") {
    const leak_guard guard;
    const watchdog bounded;
    raw_queue<std::string> raw;
    int pipe_ends[2];
    REQUIRE(::pipe2(pipe_ends, O_CLOEXEC) == 0);
    const int zero = ::open("/dev/zero", O_RDWR | O_CLOEXEC);
    const int shorter = memory_of(100, 100);
    const int sparse = memory_of(std::size_t{1} << 40, 10);
    raw_header marked = header_with(1, 0, 2);
    marked.mark[0] = 'X';
    raw_header typed = header_with(1, 0, 2);
    typed.type = 99;
    const std::string empty_payloads(std::size_t{4} * 65, '\0');
    const std::vector<std::function<void()>> wrong{
        [&] { REQUIRE(::send(raw.writer, "x", 1, 0) == 1); },
        [&] { REQUIRE(::send(raw.writer, &marked, 23, 0) == 23); },
        [&] { send_raw(raw.writer, marked, "ab"); },
        [&] { send_raw(raw.writer, typed, "ab"); },
        [&] { send_raw(raw.writer, header_with(1, 0, 3), "ab"); },
        [&] { send_raw(raw.writer, header_with(1, 0, ~std::uint64_t{0}), "ab"); },
        [&] { send_raw(raw.writer, header_with(1, 1, 2), "ab"); },
        [&] { send_raw(raw.writer, header_with(1, 0, 2), "ab", {zero}); },
        [&] { send_raw(raw.writer, header_with(1, 300, 2), "ab", {zero}); },
        [&] {
            send_raw(raw.writer, header_with(1, 300, 2), "ab", {zero, zero});
        },
        [&] { send_raw(raw.writer, header_with(0, 0, 2), "ab"); },
        [&] { send_raw(raw.writer, header_with(9, 0, 2), "ab"); },
        [&] { send_raw(raw.writer, header_with(4, 1, 0), "", {shorter}); },
        [&] { send_raw(raw.writer, header_with(3, 0, 3), "abc"); },
        [&] { send_raw(raw.writer, header_with(3, 0, empty_payloads.size()), empty_payloads); },
        [&] { send_raw(raw.writer, header_with(3, 0, 6), std::string("\x09\0\0\0ab", 6)); },
        [&] { send_raw(raw.writer, header_with(2, 0, 2), ""); },
        [&] { send_raw(raw.writer, header_with(2, 1, 2), "", {pipe_ends[0]}); },
        [&] { send_raw(raw.writer, header_with(2, 1, 2), "", {zero}); },
        [&] { send_raw(raw.writer, header_with(2, 1, 101), "", {shorter}); },
        [&] { send_raw(raw.writer, header_with(2, 1, std::uint64_t{1} << 39), "", {sparse}); },
        [&] { send_raw(raw.writer, header_with(1, 253, 2), "ab", std::vector<int>(252, zero)); },
    };
    std::size_t number = 0;
    for (const auto& send : wrong) {
        CAPTURE(number++);
        send();
        int thrown = 0;
        try {
            (void)raw.reader.get();
        } catch (const cohort::codec_error&) {
            thrown = 1;
        } catch (const cohort::sharing_error&) {
            thrown = 2;
        }
        CHECK(thrown != 0);
        send_raw(raw.writer, header_with(1, 0, 4), "good");
        CHECK(*raw.reader.get() == "good");
    }
    for (const int fd : {pipe_ends[0], pipe_ends[1], zero, shorter, sparse})
        ::close(fd);
}

GROUP_TEST("queue packets: an awaited get throws for a packet that is none, and goes on") {
    raw_queue<std::string> raw;
    REQUIRE(::send(raw.writer, "x", 1, 0) == 1);
    bool thrown = false;
    try {
        (void)co_await raw.whole.get();
    } catch (const cohort::codec_error&) {
        thrown = true;
    }
    CHECK(thrown);
    asio::steady_timer soon(executor, 10ms);
    soon.async_wait([&](asio::error_code) {
        REQUIRE(::send(raw.writer, "x", 1, 0) == 1);
        send_raw(raw.writer, header_with(1, 0, 4), "good");
    });
    thrown = false;
    try {
        (void)co_await raw.whole.get();
    } catch (const cohort::codec_error&) {
        thrown = true;
    }
    CHECK(thrown);
    CHECK(*co_await raw.whole.get() == "good");
}

TEST_CASE("queue packets: an array for which there is no descriptor waits in the queue") {
    const leak_guard guard;
    const watchdog bounded;
    queue<std::vector<shared_array<int>>> arrays;
    arrays.keep_both_ends();
    {
        std::vector<shared_array<int>> three;
        for (int i = 0; i < 3; ++i)
            three.emplace_back(10);
        three[2](9) = 42;
        CHECK(arrays.try_put(three));
    }
    std::vector<int> taken;
    std::optional<descriptor_limit> few(200);
    for (int fd; (fd = ::fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0;)
        taken.push_back(fd);
    for (int i = 0; i < 2; ++i) {  // room for two of the three
        ::close(taken.back());
        taken.pop_back();
    }
    CHECK_THROWS_AS((void)arrays.try_get(), cohort::sharing_error);
    CHECK_THROWS_AS((void)arrays.try_get(), cohort::sharing_error);
    for (const int fd : taken)
        ::close(fd);
    few.reset();
    const auto came = arrays.try_get();
    REQUIRE(came);
    CHECK((*came)[2](9) == 42);
}

namespace {

using arrays = std::vector<shared_array<int>>;

/// Puts arrays, and gets them while so many numbers of descriptors are free: first below the
/// highest that is in use, then above it.
void wait_in_queue(std::size_t count, rlim_t limit, int free_below, int free_above) {
    queue<arrays> values;
    values.keep_both_ends();
    std::vector<int> below;
    std::vector<int> above;
    for (int i = 0; i < free_below; ++i)
        below.push_back(::fcntl(0, F_DUPFD_CLOEXEC, 0));
    {
        arrays sent;
        for (std::size_t i = 0; i < count; ++i)
            sent.emplace_back(1);
        sent.back()(0) = 42;
        CHECK(values.try_put(sent));
    }
    std::optional<descriptor_limit> few(limit);
    for (int fd; (fd = ::fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0;)
        above.push_back(fd);
    for (const int fd : below)
        ::close(fd);
    for (int i = 0; i < free_above; ++i, above.pop_back())
        ::close(above.back());
    int waited = 0;
    for (int i = 0; i < 2; ++i)
        try {
            (void)values.try_get();
        } catch (const cohort::sharing_error&) {
            ++waited;
        }
    for (const int fd : above)
        ::close(fd);
    few.reset();
    CHECK(waited == 2);
    const auto came = values.try_get();
    REQUIRE(came);
    REQUIRE(came->size() == count);
    CHECK(came->back()(0) == 42);
}

}  // namespace

TEST_CASE("queue packets: a value waits in the queue as long as its descriptors have no room") {
    const leak_guard guard;
    const watchdog bounded;
    wait_in_queue(4, 256, 2, 0);
    wait_in_queue(100, 400, 0, 50);
    wait_in_queue(300, 700, 0, 100);  // in a carrier
}

TEST_CASE("queue packets: more arrays than one packet carries cross in one value") {
    const leak_guard guard;
    queue<std::vector<shared_array<int>>> arrays;
    std::vector<shared_array<int>> many;
    for (int i = 0; i < 300; ++i)
        many.emplace_back(1)(0) = i;
    CHECK(arrays.try_put(many));
    const auto came = arrays.try_get();
    REQUIRE(came);
    int sum = 0;
    for (const auto& each : *came)
        sum += each(0);
    CHECK(sum == 299 * 300 / 2);
    CHECK((*came)[7].shares_memory_with(many[7]));
}

TEST_CASE("queue packets: one that is none costs get_some nothing of the others") {
    const leak_guard guard;
    raw_queue<std::string> raw;
    for (const char* text : {"a", "b"})
        send_raw(raw.writer, header_with(1, 0, 1), text);
    REQUIRE(::send(raw.writer, "x", 1, 0) == 1);
    send_raw(raw.writer, header_with(1, 0, 1), "c");
    CHECK(raw.reader.get_some(10) == std::vector<std::string>{"a", "b"});
    CHECK_THROWS_AS((void)raw.reader.get_some(10), cohort::codec_error);
    CHECK(raw.reader.get_some(10) == std::vector<std::string>{"c"});
}

TEST_CASE("queue packets: an end with a capacity is not shared with a command") {
    const leak_guard guard;
    const queue<int> bounded(1);
    CHECK_THROWS_AS((void)cohort::item_to_share(bounded.writer()), std::invalid_argument);
}

TEST_CASE("queue packets: the other end of a queue is no end of that kind") {
    const leak_guard guard;
    queue<int> numbers;
    const auto encoded = cohort::detail::encode_value(numbers.reader());
    CHECK_THROWS_AS((void)cohort::detail::decode_value<cohort::queue_writer<int>>(
                        encoded.cbor, encoded.attachments),
                    cohort::codec_error);
    CHECK_THROWS_AS(
        (void)cohort::detail::decode_value<queue_reader<long>>(encoded.cbor, encoded.attachments),
        cohort::codec_error);
}

}  // namespace queue_packets_test
