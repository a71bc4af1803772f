// SPDX-License-Identifier: BSL-1.0
// Queues with a capacity: how many values wait, whatever other processes do.
#include "group_test.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace queue_capacity_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::queue;
using cohort::queue_reader;
using cohort::queue_writer;
using cohort::shared_array;

namespace {

/// Fills a queue as a user who may have few descriptors in sockets.
/// @return how many values the queue took; -1: it took none after one was received
int fill_and_take(int, std::size_t arrays) {
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    // Of a user of its own, because the kernel counts the descriptors in the sockets of all
    // processes of a user, and other tests may run at the same time.
    const auto nobody = 20'000 + static_cast<unsigned>(::getpid()) % 40'000;
    if (::geteuid() == 0 && (::setgid(nobody) != 0 || ::setuid(nobody) != 0))
        throw std::runtime_error("this worker stays root");
    queue<std::vector<shared_array<int>>> values;
    std::vector<shared_array<int>> value;
    for (std::size_t i = 0; i < arrays; ++i)
        value.emplace_back(4);
    int taken = 0;
    while (taken < 50 && values.try_put(value))
        ++taken;
    return values.try_get() && values.try_put(value) ? taken : -1;
}

/// Does what a holder of an end can do to the files behind it.
void do_harm(int, const queue_reader<int>&, const queue_writer<int>&, const cohort::event& done) {
    const std::string nonsense(100'000, '\x05');
    for (int fd = 3; fd < 256; ++fd) {
        const int flags = ::fcntl(fd, F_GETFL);
        if (flags < 0)
            continue;
        (void)::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
        if (::fcntl(fd, F_GET_SEALS) >= 0)
            (void)!::pwrite(fd, nonsense.data(), 64 + 2 * 16, 0);
    }
    done.set();
    for (;;)
        ::pause();
}

/// Receives a value as a worker does that is killed before it frees the value's slot.
void take_and_die(int, const queue_reader<int>& from) {
    const auto encoded = cohort::detail::encode_value(from);
    char packet[100];
    if (::recv(*encoded.attachments[0], packet, sizeof packet, 0) > 0)
        ::kill(::getpid(), SIGKILL);
}

void take_all(int, queue_reader<int> from) {
    for ([[maybe_unused]] const int each : from) {
    }
}

}  // namespace

TEST_CASE("queue capacity: a capacity is kept exactly") {
    const leak_guard guard;
    for (const std::size_t capacity : {1u, 2u, 7u, 200u}) {
        queue<int> bounded(capacity);
        int value = 0;
        for (std::size_t i = 0; i < capacity; ++i) {
            CHECK(bounded.size() == i);
            CHECK(bounded.try_put(value));
        }
        CHECK_FALSE(bounded.try_put(value));
        CHECK_FALSE(bounded.writer().put(value, 5ms));
        CHECK(bounded.size() == capacity);
        CHECK(bounded.try_get());
        CHECK(bounded.try_put(value));
        CHECK_FALSE(bounded.try_put(value));
    }
    queue<int> large(1000);  // the socket may be full before
    int value = 0;
    while (large.size() <= 1000 && large.try_put(value)) {
    }
    CHECK(large.size() <= 1000);
    CHECK_THROWS_AS(queue<int>(0), std::invalid_argument);
    CHECK_THROWS_AS((void)queue<int>().size(), std::logic_error);
}

TEST_CASE("queue capacity: what a killed process has received takes no room in the queue") {
    const leak_guard guard;
    const watchdog bounded;
    for (const int capacity : {1, 3}) {
        CAPTURE(capacity);
        queue<int> numbers(static_cast<std::size_t>(capacity));
        numbers.keep_both_ends();
        int value = 1;
        while (numbers.try_put(value)) {
        }
        CHECK(numbers.size() == capacity);
        const auto reader = cohort::detail::encode_value(numbers.reader());
        const int socket = *reader.attachments[0];
        char packet[100];
        // As processes that are killed before they free the slots of what they have received.
        for (int i = 0; i < capacity; ++i)
            CHECK(::recv(socket, packet, sizeof packet, 0) > 0);
        CHECK(numbers.size() == 0);
        for (value = 0; value < capacity; ++value)
            CHECK(numbers.try_put(value));
        CHECK_FALSE(numbers.try_put(value));
        CHECK(numbers.size() == capacity);
    }
}

TEST_CASE("queue capacity: a reader that finds the queue empty leaves no room to killed readers") {
    const leak_guard guard;
    const watchdog bounded;
    queue<int> numbers(2);
    numbers.keep_both_ends();
    int value = 1;
    CHECK(numbers.try_put(value));
    const auto reader = cohort::detail::encode_value(numbers.reader());
    char packet[100];
    CHECK(::recv(*reader.attachments[0], packet, sizeof packet, 0) > 0);  // and it is killed
    CHECK_FALSE(numbers.try_get());
    for (value = 0; value < 2; ++value)
        CHECK(numbers.try_put(value));  // the second one finds the first one in the queue
    CHECK_FALSE(numbers.try_put(value));
    CHECK(numbers.size() == 2);
}

TEST_CASE("queue capacity: room that a killed reader took is found though the queue is never "
          "empty") {
    const leak_guard guard;
    const watchdog bounded;
    queue<int> numbers(3);
    numbers.keep_both_ends();
    auto reader = numbers.reader();
    auto writer = numbers.writer();
    for (int i = 0; i < 3; ++i)
        writer.put(i);
    const auto encoded = cohort::detail::encode_value(reader);
    char packet[100];
    CHECK(::recv(*encoded.attachments[0], packet, sizeof packet, 0) > 0);  // 0, and it is killed
    CHECK(*reader.get() == 1);
    writer.put(3);
    CHECK(*reader.get() == 2);  // 3 waits
    writer.put(4);
    CHECK(*reader.get() == 3);  // which was sent when 0 and 2 had been received
    int value = 5;
    CHECK(numbers.size() == 1);
    CHECK(numbers.try_put(value));
    CHECK(numbers.try_put(++value));
    CHECK_FALSE(numbers.try_put(++value));
    for (int i = 4; i < 7; ++i)
        CHECK(*reader.get() == i);
    CHECK(numbers.size() == 0);
}

TEST_CASE("queue capacity: a capacity may be larger than any queue gets, and is not negative") {
    const leak_guard guard;
    for (const std::size_t capacity : {std::size_t{100'000}, std::size_t{5'000'000'000}}) {
        queue<int> large(capacity);
        CHECK(large.size() == 0);
        int value = 1;
        CHECK(large.try_put(value));
        CHECK(large.size() == 1);
        CHECK(*large.try_get() == 1);
        CHECK(large.size() == 0);
    }
    CHECK_THROWS_AS(queue<int>(static_cast<std::size_t>(-1)), std::invalid_argument);
    const int negative = -5;
    CHECK_THROWS_WITH_AS(queue<int>(static_cast<std::size_t>(negative)),
                         "cohort: a queue of capacity -5: the capacity must be positive",
                         std::invalid_argument);
}

GROUP_TEST("queue capacity: a put that waits goes on when the only reader was killed in its get") {
    for (const auto method : {cohort::start_method::spawn, cohort::start_method::fork}) {
        CAPTURE(static_cast<int>(method));
        queue<int> numbers(1);
        numbers.keep_both_ends();
        for (int i = 0; i < 3; ++i) {
            const auto how =
                cohort::options(1).start_method(method).on_failure(cohort::on_failure::keep_going);
            auto group =
                co_await cohort::spawn(cohort::function<take_and_die>(numbers.reader()), how);
            co_await numbers.put(1);
            co_await numbers.put(2);
            const auto told = co_await group.wait();
            CHECK(told.outcomes[0].status.signal() == SIGKILL);
            CHECK(numbers.size() == 1);
            CHECK(*co_await numbers.get() == 2);
        }
    }
}

GROUP_TEST("queue capacity: many puts wait in line, and each goes on when there is room") {
    queue<int> numbers(2);
    auto group = co_await cohort::spawn(cohort::function<take_all>(numbers.reader()), 2);
    constexpr int many = 300;
    cohort::event done;
    std::atomic<int> put{0};  // each handler runs on a thread of its own
    for (int i = 0; i < many; ++i)
        numbers.writer().async_put(i, [&put, &done](std::exception_ptr error) {
            CHECK_FALSE(error);
            if (++put == many)
                done.set();
        });
    co_await done.async_wait(asio::use_awaitable);
    numbers.close();
    CHECK(co_await group.join());
}

GROUP_TEST("queue capacity: no holder of an end can make the engine wait, or end this process") {
    queue<int> numbers(1);
    const auto reader = numbers.reader();
    auto writer = numbers.writer();
    auto other = co_await cohort::spawn(cohort::command("sleep", 600), 1);
    int full = 1;
    CHECK(writer.try_put(full));
    cohort::event ended;
    writer.async_put(2, 400ms, [&](std::exception_ptr, bool) { ended.set(); });
    cohort::event done;
    auto group = co_await cohort::spawn(cohort::function<do_harm>(reader, writer, done), 1);
    co_await done.async_wait(asio::use_awaitable);
    CHECK_FALSE(co_await other.join(500ms));  // the engine goes on
    co_await ended.async_wait(asio::use_awaitable);
    (void)writer.try_put(full);
    (void)queue_writer<int>(writer).put(full, 10ms);
    (void)queue_reader<int>(reader).get(10ms);
    CHECK(numbers.size() <= 1);
    co_await group.stop();
    co_await other.stop();
}

GROUP_TEST("queue capacity: a value with too many descriptors in flight finds the queue full") {
    auto few = co_await cohort::spawn(cohort::function<fill_and_take>(std::size_t{250}), 1);
    CHECK(co_await few.join());
    auto many = co_await cohort::spawn(cohort::function<fill_and_take>(std::size_t{300}), 1);
    CHECK(co_await many.join());
    for (auto* const group : {&few, &many}) {
        const auto taken = group->outcomes().at(0).result<int>();
        CHECK(taken > 0);
        CHECK(taken < 50);
    }
}

}  // namespace queue_capacity_test
