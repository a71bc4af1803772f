// SPDX-License-Identifier: BSL-1.0
// What a worker that was taken over can put into a queue, and what it can't do with it.
#include "descriptor_limit.hpp"
#include "group_test.hpp"
#include "procfs.hpp"
#include "raw_queue.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace queue_hostile_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::queue;
using cohort::queue_reader;
using cohort::shared_array;

struct job {
    int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(job, number)

struct picky {};
void to_json(nlohmann::json& to, const picky&) { to = 1; }
void from_json(const nlohmann::json&, picky&) { throw std::domain_error("picky refuses"); }

namespace {

template <class T>
void put_payload(const raw_queue<T>& to, std::string_view payload) {
    send_raw(to.writer, header_with(1, 0, payload.size()), std::string(payload));
}

struct lingering_pair {
    int sender;  // its close waits for the peer, which reads nothing
    int peer;
};
lingering_pair lingering_socket(std::chrono::seconds how_long) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(listener, 1) == 0);
    REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length) == 0);
    const int sender = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(::connect(sender, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    const int peer = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ::close(listener);
    const std::vector<char> bytes(1 << 16);
    while (::send(sender, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    const linger wait{1, static_cast<int>(how_long.count())};
    REQUIRE(::setsockopt(sender, SOL_SOCKET, SO_LINGER, &wait, sizeof wait) == 0);
    return {sender, peer};
}

}  // namespace

TEST_CASE("queue hostile: what is no value of the type is a codec_error") {
    const leak_guard guard;
    using namespace std::string_view_literals;
    raw_queue<job> jobs;
    for (const auto payload : {"\xa0"sv, "\xf5"sv}) {  // {} and true
        put_payload(jobs, payload);
        CHECK_THROWS_AS((void)jobs.reader.get(), cohort::codec_error);
    }
    raw_queue<shared_array<int>> arrays;
    for (const auto payload :
         {"\x85\xf6\0\x81\x05\x81\x01\x63<i4"sv,  // 5 elements in no memory
          "\x85\xf6\0\x81\x1b\x7f\xff\xff\xff\xff\xff\xff\xff\x81\x01\x63<i4"sv}) {
        put_payload(arrays, payload);
        CHECK_THROWS_AS((void)arrays.reader.get(), cohort::codec_error);
    }
    raw_queue<bool> bools;
    put_payload(bools, "\x02");
    CHECK_THROWS_AS((void)bools.reader.get(), cohort::codec_error);
    put_payload(bools, "\x01");
    CHECK(*bools.reader.get());
    raw_queue<picky> others;
    put_payload(others, "\x01");
    CHECK_THROWS_AS((void)others.reader.get(), std::domain_error);
}

TEST_CASE("queue hostile: an end that arrives again is of the type and capacity that it was of") {
    const leak_guard guard;
    using numbers = std::vector<double>;
    raw_queue<std::string> texts;
    raw_queue<queue_reader<numbers>> handles;
    const int reader = *cohort::item_to_share(texts.reader).lent.lock();
    const auto put_reader = [&](std::uint64_t type, std::uint64_t capacity, int credits) {
        cohort::detail::encoder to;
        to.array(7);
        to.boolean(false);
        to.unsigned_integer(0);
        credits < 0 ? to.null() : to.unsigned_integer(1);
        to.unsigned_integer(type);
        to.unsigned_integer(capacity);
        to.unsigned_integer(65536);
        to.boolean(true);
        const auto& cbor = to.bytes();
        const std::string payload(reinterpret_cast<const char*>(cbor.data()), cbor.size());
        std::vector<int> with{reader};
        if (credits >= 0)
            with.push_back(credits);
        send_raw(handles.writer,
                 header_with(1, static_cast<std::uint16_t>(with.size()), payload.size()), payload,
                 with);
    };
    put_reader(cohort::detail::type_hash_of<numbers>(), 0, -1);
    CHECK_THROWS_AS((void)handles.reader.get(), cohort::codec_error);

    raw_queue<queue_reader<std::string>> others;
    std::swap(handles.writer, others.writer);
    const int credits = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    put_reader(cohort::detail::type_hash_of<std::string>(), 1, credits);
    CHECK_THROWS_AS((void)others.reader.get(), cohort::codec_error);
    ::close(credits);
    put_reader(cohort::detail::type_hash_of<std::string>(), 0, -1);
    auto same = others.reader.get();
    REQUIRE(same);
    put_payload(texts, std::string(20'000, 'A'));
    CHECK((*same->get() == std::string(20'000, 'A')));
}

GROUP_TEST("queue hostile: a socket that lingers in a bad packet holds up neither engine nor get") {
    raw_queue<std::string> raw;
    co_await asio::post(executor, asio::use_awaitable);
    for (const bool awaited : {true, false}) {
        CAPTURE(awaited);
        const auto lingering = lingering_socket(2h);
        send_raw(raw.writer, header_with(0, 1, 0), "", {lingering.sender});
        ::close(lingering.sender);
        bool refused = false;
        try {
            if (awaited)
                (void)co_await raw.whole.get();
            else
                (void)raw.reader.get();
        } catch (const cohort::codec_error&) {
            refused = true;
        }
        CHECK(refused);
        ::close(lingering.peer);
    }
}

GROUP_TEST("queue hostile: a socket that lingers in a good packet holds up nobody") {
    raw_queue<std::string> raw;
    co_await asio::post(executor, asio::use_awaitable);
    for (const bool awaited : {true, false}) {
        CAPTURE(awaited);
        const auto lingering = lingering_socket(2h);
        send_raw(raw.writer, header_with(1, 1, 4), "good", {lingering.sender});
        ::close(lingering.sender);
        cohort::received<std::string> got;
        if (awaited)
            got = co_await raw.whole.get();
        else
            got = raw.reader.get();
        CHECK(*got == "good");
        ::close(lingering.peer);
    }
}

TEST_CASE("queue hostile: a socket that lingers in an unread packet holds up nobody") {
    const leak_guard guard;
    const watchdog bounded;
    const auto lingering = lingering_socket(2h);
    {
        const raw_queue<std::string> raw;
        send_raw(raw.writer, header_with(1, 1, 4), "good", {lingering.sender});
        ::close(lingering.sender);
    }
    ::close(lingering.peer);
}

GROUP_TEST("queue hostile: a packet of no bytes is refused, and is not the queue's end") {
    raw_queue<int> raw;
    const auto send_nothing = [&] { REQUIRE(::send(raw.writer, "", 0, 0) == 0); };
    send_nothing();
    raw.whole.keep_both_ends().writer().put(7);
    CHECK_THROWS_AS((void)raw.reader.get(10s), cohort::codec_error);
    CHECK(*raw.reader.get(10s) == 7);
    send_nothing();
    bool is_refused = false;
    try {
        (void)co_await raw.whole.get();
    } catch (const cohort::codec_error&) {
        is_refused = true;
    }
    CHECK(is_refused);
}

GROUP_TEST("queue hostile: awaited gets don't fill the table with what bad packets bring") {
    raw_queue<std::string> raw;
    const descriptor_limit few(open_descriptors().rbegin()->first + 2'000u);
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    const std::vector<int> many(253, ends[0]);
    int refused = 0;
    for (int packet = 0; packet < 30; ++packet) {
        send_raw(raw.writer, header_with(0, 253, 0), "", many);
        try {
            (void)co_await raw.whole.get();
        } catch (const cohort::codec_error&) {  // no sharing_error: there is room
            ++refused;
        }
    }
    CHECK(refused == 30);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_CASE("queue hostile: many packets that name one memory file do not take its size many times") {
    const leak_guard guard;
    constexpr std::size_t size = 8 << 20;
    raw_queue<std::string> raw;
    const int file = memory_of(size, size);
    for (int i = 0; i < 12; ++i)
        send_raw(raw.writer, header_with(2, 1, size), "", {file});
    ::close(file);
    std::size_t got = 0;
    while (got < 12) {
        const auto some = raw.reader.get_some(64);
        CHECK(some.size() >= 1);
        CHECK(some.size() <= 8);
        got += some.size();
    }
    CHECK(got == 12);
}

TEST_CASE("queue hostile: a reader can't give a writer memory to write to") {
    const leak_guard guard;
    queue<std::string> texts;
    texts.keep_both_ends();
    const int reader = *cohort::item_to_share(texts.reader()).lent.lock();
    const int memory = memory_of(5 << 20, 5 << 20);
    send_raw(reader, header_with(4, 1, 0), "", {memory});
    const std::string large(5 << 20, 'y');
    texts.writer().put(large);
    CHECK((*texts.try_get() == large));
    char first = 0;
    CHECK(::pread(memory, &first, 1, 0) == 1);
    CHECK(first == 'x');
    ::close(memory);
}

TEST_CASE("queue hostile: a blocked get sleeps although another process made the socket not wait") {
    const leak_guard guard;
    const watchdog bounded;
    raw_queue<int> raw;
    const int reader = *cohort::item_to_share(raw.reader).lent.lock();
    REQUIRE(::fcntl(reader, F_SETFL, O_NONBLOCK) == 0);
    rusage before{};
    rusage after{};
    std::thread waits([&] {
        ::getrusage(RUSAGE_THREAD, &before);
        CHECK(*raw.reader.get() == 7);
        ::getrusage(RUSAGE_THREAD, &after);
    });
    std::this_thread::sleep_for(300ms);  // for the processor time that a spin would take
    raw.whole.writer().put(7);
    waits.join();
    CHECK(after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw < 50);
    const auto used = [](const rusage& of) {
        return (of.ru_utime.tv_sec + of.ru_stime.tv_sec) * 1000 +
               (of.ru_utime.tv_usec + of.ru_stime.tv_usec) / 1000;
    };
    CHECK(used(after) - used(before) < 150);  // a spin takes 300
}

}  // namespace queue_hostile_test
