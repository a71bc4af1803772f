// SPDX-License-Identifier: BSL-1.0
// Awaited gets and puts: cancelled, timed out, with their context destroyed, many at once.
#include "group_test.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace queue_wait_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;
using cohort::queue;
using cohort::received;

namespace {

void put_some(int, cohort::queue_writer<int> numbers, int count) {
    for (int i = 0; i < count; ++i)
        numbers.put(i);
}
void echo(int, cohort::queue_reader<int> in, cohort::queue_writer<int> out) {
    for (const int& value : in)
        out.put(value);
}
void echo_text(int, cohort::queue_reader<std::string> in, cohort::queue_writer<std::string> out) {
    for (const auto& text : in)
        out.put(text);
}

template <class T>
queue<T> kept_queue() {
    queue<T> made;
    made.keep_both_ends();
    return made;
}

}  // namespace

GROUP_TEST("queue wait: a get that waits completes with the value that comes") {
    auto numbers = kept_queue<int>();
    asio::steady_timer soon(executor, 10ms);
    soon.async_wait([&](asio::error_code) {
        int value = 7;
        numbers.try_put(value);
    });
    const auto got = co_await numbers.get();
    REQUIRE(got);
    CHECK(*got == 7);
}

GROUP_TEST("queue wait: a get that waits completes when the last writer closes") {
    queue<int> numbers;
    asio::steady_timer soon(executor, 10ms);
    soon.async_wait([&](asio::error_code) { numbers.close(); });
    CHECK((co_await numbers.get()).ended());
    CHECK((co_await numbers.get()).ended());
}

GROUP_TEST("queue wait: a cancelled get loses nothing, and the next one gets the value") {
    auto numbers = kept_queue<int>();
    for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                            asio::cancellation_type::total}) {
        asio::cancellation_signal signal;
        std::optional<bool> aborted;
        numbers.async_get(asio::bind_cancellation_slot(
            signal.slot(),
            asio::bind_executor(executor, [&](std::exception_ptr error, received<int> value) {
                CHECK_FALSE(value);
                try {
                    std::rethrow_exception(error);
                } catch (const std::system_error& e) {
                    aborted = e.code() == asio::error::operation_aborted;
                }
            })));
        signal.emit(type);
        int value = 1;
        CHECK(numbers.try_put(value));
        CHECK(*co_await numbers.get() == 1);
        while (!aborted)
            co_await asio::post(executor, asio::use_awaitable);
        CHECK(*aborted);
    }
}

TEST_CASE("queue wait: no value is lost by a context that is destroyed") {
    const leak_guard guard;
    const watchdog bounded;
    auto numbers = kept_queue<int>();
    std::set<int> seen;
    for (int round = 0; round < 50; ++round) {
        {
            asio::io_context io;
            numbers.async_get(asio::bind_executor(io, [&](std::exception_ptr, received<int> value) {
                if (value)
                    seen.insert(*value);
            }));
            int value = round;
            CHECK(numbers.try_put(value));
            if (round % 3 == 0)
                io.poll();
        }
    }
    for (;;) {
        // The engine may be about to put back the value of a get whose context is gone.
        auto value = numbers.reader().get(seen.size() < 50 ? 20s : 0s);
        if (!value)
            break;
        seen.insert(*value);
    }
    CHECK(seen.size() == 50);
}

TEST_CASE("queue wait: a get of a destroyed context does not keep the queue open") {
    const leak_guard guard;
    const watchdog bounded;
    queue<int> numbers;
    auto writer = numbers.writer();
    {
        asio::io_context io;
        numbers.reader().async_get(
            asio::bind_executor(io, [](std::exception_ptr, received<int>) {}));
        numbers = queue<int>();
    }
    CHECK_THROWS_AS(writer.put(1), cohort::broken_queue);
}

GROUP_TEST("queue wait: waiting gets are served in the order of their calls") {
    auto numbers = kept_queue<int>();
    std::vector<int> order;
    for (int i = 0; i < 10; ++i)
        numbers.async_get(
            asio::bind_executor(executor, [&order, i](std::exception_ptr, received<int> value) {
                REQUIRE(value);
                CHECK(*value == i);
                order.push_back(i);
            }));
    for (int i = 0; i < 10; ++i)
        co_await numbers.put(i);
    while (order.size() < 10)
        co_await asio::post(executor, asio::use_awaitable);
    CHECK(std::ranges::is_sorted(order));
}

TEST_CASE("queue wait: a hundred coroutines on four threads share one queue") {
    const leak_guard guard;
    const watchdog bounded;
    queue<int> numbers;
    asio::thread_pool pool(4);
    std::atomic<int> sum = 0;
    std::vector<std::future<void>> all;
    const auto take = [](queue<int> from, std::atomic<int>& total) -> asio::awaitable<void> {
        while (auto value = co_await from.get())
            total += *value;
    };
    for (int i = 0; i < 100; ++i)
        all.push_back(asio::co_spawn(pool, take(numbers, sum), asio::use_future));
    auto writer = numbers.writer();
    for (int i = 0; i < 5000; ++i)
        writer.put(1);
    writer.close();
    numbers.close();
    for (auto& each : all)
        each.get();
    pool.join();
    CHECK(sum == 5000);
}

GROUP_TEST(
    "queue wait: puts wait in line for a full queue, and those that are cancelled put nothing") {
    queue<int> numbers(1);
    numbers.keep_both_ends();
    co_await numbers.put(0);
    std::vector<int> done;
    asio::cancellation_signal signal;
    bool aborted = false;
    numbers.async_put(
        1, asio::bind_cancellation_slot(signal.slot(),
                                        asio::bind_executor(executor, [&](std::exception_ptr e) {
                                            aborted = e != nullptr;
                                        })));
    for (int i = 2; i < 6; ++i)
        numbers.async_put(i, asio::bind_executor(executor, [&done, i](std::exception_ptr e) {
                              CHECK_FALSE(e);
                              done.push_back(i);
                          }));
    signal.emit(asio::cancellation_type::terminal);
    for (const int expected : {0, 2, 3, 4, 5})
        CHECK(*co_await numbers.get() == expected);
    while (done.size() < 4)
        co_await asio::post(executor, asio::use_awaitable);
    CHECK(aborted);
    CHECK(done == std::vector{2, 3, 4, 5});
    CHECK(numbers.size() == 0);
}

GROUP_TEST("queue wait: parent and worker play ping-pong, also with large values") {
    {
        queue<int> there(1);
        queue<int> back(1);
        auto group = co_await cohort::spawn(cohort::function<echo>(there, back), 1);
        for (int i = 0; i < 200; ++i) {
            co_await there.put(i);
            CHECK(*co_await back.get() == i);
        }
        there.close();
        co_await group.join();
    }
    queue<std::string> there;
    queue<std::string> back;
    auto group = co_await cohort::spawn(cohort::function<echo_text>(there, back), 1);
    for (const std::size_t size : {10u, 3u << 20, 200'000u, 9u << 20, 64u}) {
        const std::string text(size, 'a');
        co_await (there.put(text) &&
                      [](auto& from, const std::string& sent) -> asio::awaitable<void> {
            CHECK((*co_await from.get() == sent));
        }(back, text));
    }
    there.close();
    co_await group.join();
}

GROUP_TEST("queue wait: the loss of the last reader ends a blocked put and an awaited one") {
    queue<int> numbers(1);
    auto reader = std::optional(numbers.reader());
    auto other = numbers.writer();
    CHECK(other.put(1, 1s));
    // From here on the role counts: the first put gives up the queue's own reading end.
    (void)cohort::detail::encode_value(other);
    std::thread blocked([&other] { CHECK_THROWS_AS(other.put(2), cohort::broken_queue); });
    asio::steady_timer soon(executor, 30ms);
    soon.async_wait([&](asio::error_code) { reader.reset(); });
    bool broken = false;
    try {
        co_await numbers.put(3);
    } catch (const cohort::broken_queue&) {
        broken = true;
    }
    CHECK(broken);
    blocked.join();
}

GROUP_TEST("queue wait: a put that waits fails when this process closes its end") {
    queue<int> numbers(1);
    numbers.keep_both_ends();
    co_await numbers.put(1);
    asio::steady_timer soon(executor, 10ms);
    soon.async_wait([&](asio::error_code) { numbers.close(); });
    bool failed = false;
    try {
        co_await numbers.put(2);
    } catch (const std::system_error& error) {
        failed = error.code() == std::errc::operation_canceled;
    }
    CHECK(failed);
}

GROUP_TEST("queue wait: a large put keeps its place, and can be cancelled while it is written") {
    queue<std::string> texts(1);
    texts.keep_both_ends();
    const std::string large(4 << 20, 'x');
    co_await texts.put("first");
    asio::cancellation_signal signal;
    bool aborted = false;
    texts.async_put(large,
                    asio::bind_cancellation_slot(
                        signal.slot(), asio::bind_executor(executor, [&](std::exception_ptr e) {
                            aborted = e != nullptr;
                        })));
    int done = 0;
    const auto count = [&] {
        return asio::bind_executor(executor, [&](std::exception_ptr e) { done += e == nullptr; });
    };
    texts.async_put(large, count());
    texts.async_put("last", count());
    signal.emit(asio::cancellation_type::total);
    CHECK(*co_await texts.get() == "first");
    CHECK((*co_await texts.get() == large));
    CHECK(*co_await texts.get() == "last");
    while (done < 2)
        co_await asio::post(executor, asio::use_awaitable);
    CHECK(aborted);
}

GROUP_TEST("queue wait: get takes every completion token") {
    auto numbers = kept_queue<int>();
    int value = 5;
    CHECK(numbers.try_put(value));
    auto future = numbers.async_get(asio::use_future);
    CHECK(*future.get() == 5);
    CHECK(numbers.try_put(value));
    CHECK(*co_await numbers.async_get(asio::use_awaitable) == 5);
    numbers.async_put(6, asio::use_future).get();
    CHECK(numbers.async_put(7, 1s, asio::use_future).get());
    CHECK(*numbers.async_get(1s, asio::use_future).get() == 6);
    CHECK(*numbers.async_get(asio::use_future).get() == 7);
    CHECK(numbers.async_get(5ms, asio::use_future).get().timed_out());
}

GROUP_TEST("queue wait: a group and its queue are awaited together") {
    queue<int> numbers;
    auto group = co_await cohort::spawn(cohort::function<put_some>(numbers.writer(), 500), 2);
    const auto count = [](queue<int> from) -> asio::awaitable<int> {
        int seen = 0;
        while (co_await from.get())
            ++seen;
        co_return seen;
    };
    numbers.close();
    const auto [joined, seen] = co_await (group.join() && count(numbers));
    CHECK(joined);
    CHECK(seen == 1000);
}

TEST_CASE("queue wait: a forked copy of the host does not receive what its parent has stored") {
    const leak_guard guard;
    const watchdog bounded;
    queue<int> numbers;
    auto reader = numbers.reader();
    const std::vector<int> three{1, 2, 3};
    numbers.writer().put_all(three);  // one packet
    CHECK(*reader.get() == 1);
    const pid_t copy = ::fork();
    if (copy == 0)
        ::_exit(reader.try_get() ? 1 : 0);
    int status = -1;
    ::waitpid(copy, &status, 0);
    CHECK(status == 0);
    CHECK(*reader.get() == 2);
    CHECK(*reader.get() == 3);
}

}  // namespace queue_wait_test
