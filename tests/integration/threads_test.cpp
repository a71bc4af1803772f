// SPDX-License-Identifier: BSL-1.0
// Many threads at once: on one group, and starting groups.
#include "live_support.hpp"

#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <thread>
#include <vector>

namespace threads_test {

namespace {

using namespace std::chrono_literals;
using namespace cohort::test;

/// Runs `body(i)` on `count` threads that begin together, and waits for all.
template <class Body>
void on_threads(int count, Body body) {
    const watchdog guarded;
    std::latch begin(count);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i)
        threads.emplace_back([&, i] {
            begin.arrive_and_wait();
            body(i);
        });
    for (auto& t : threads)
        t.join();
}

TEST_CASE("threads: operations from four threads at once on one group all complete") {
    const leak_guard guard;
    asio::thread_pool pool(4);
    constexpr int workers = 8;
    auto group = cohort::async_spawn(pool, cohort::command("sleep", 0.05), cohort::options(workers),
                                     asio::use_future)
                     .get();
    std::atomic<int> joined = 0, told = 0, timed = 0;
    on_threads(4, [&](int) {
        for (int i = 0; i < 25; ++i) {
            auto a = group.async_join(asio::use_future);
            auto b = group.async_next(asio::use_future);
            auto c = group.async_join(1ms, asio::use_future);
            (void)group.alive();
            CHECK(group.pids().size() == workers);
            for (const auto& outcome : group.outcomes())
                CHECK(outcome.success());
            c.get();
            ++timed;
            if (b.get())
                ++told;
            if (a.get())
                ++joined;
        }
    });
    CHECK(joined == 100);
    CHECK(timed == 100);
    CHECK(told == workers);
}

TEST_CASE("threads: stops, signals, cancels and joins from many threads end one group once") {
    const leak_guard guard;
    for (int round = 0; round < 10; ++round) {
        asio::io_context io;
        auto group = start_ready(io, sleeper(), 4);
        asio::thread_pool pool(2);
        std::atomic<int> stopped = 0;
        on_threads(4, [&](int i) {
            if (i == 0)
                group.request_stop();
            else if (i == 1)
                group.signal(SIGCONT);
            try {
                group.async_join(asio::bind_executor(pool, asio::use_future)).get();
            } catch (const cohort::group_stopped&) {
                ++stopped;
            }
        });
        CHECK(stopped == 4);
        CHECK(group.outcomes().size() == 4);
    }
}

TEST_CASE("threads: spawns from many threads at once give whole groups") {
    const leak_guard guard;
    asio::thread_pool pool(4);
    std::atomic<int> ended = 0;
    on_threads(8, [&](int i) {
        for (int round = 0; round < 5; ++round) {
            auto group = cohort::async_spawn(pool, cohort::command("true"), cohort::options(i % 4),
                                             asio::use_future)
                             .get();
            CHECK(group.size() == i % 4);
            if (group.async_join(asio::use_future).get())
                ++ended;
        }
    });
    CHECK(ended == 40);
}

TEST_CASE("threads: groups are started and dropped at once, from many threads") {
    const leak_guard guard;
    asio::thread_pool pool(2);
    on_threads(6, [&](int) {
        for (int round = 0; round < 5; ++round) {
            auto group = cohort::async_spawn(pool, cohort::command("sleep", 1000),
                                             cohort::options(2), asio::use_future)
                             .get();
            auto join = group.async_join(asio::use_future);
            group = cohort::group();
            CHECK_THROWS_AS(join.get(), cohort::group_stopped);
        }
    });
}

TEST_CASE("threads: coroutines on a pool await groups that complete on other threads") {
    const leak_guard guard;
    const watchdog guarded;
    asio::thread_pool pool(4);
    std::atomic<int> ended = 0;
    std::vector<std::future<void>> all;
    for (int i = 0; i < 20; ++i)
        all.push_back(asio::co_spawn(
            pool,
            [](std::atomic<int>& n) -> asio::awaitable<void> {
                auto group = co_await cohort::spawn(cohort::command("true"), 2);
                while (co_await group.next())
                    ++n;
                CHECK(co_await group.join());
                CHECK((co_await group.wait()).success());
            }(ended),
            asio::use_future));
    for (auto& each : all)
        each.get();
    CHECK(ended == 40);
}

TEST_CASE("threads: coroutines on a pool join ended groups again and again") {
    const leak_guard guard;
    const watchdog guarded;
    asio::thread_pool pool(4);
    std::vector<std::future<void>> all;
    for (int i = 0; i < 4; ++i)
        all.push_back(asio::co_spawn(
            pool,
            []() -> asio::awaitable<void> {
                auto group = co_await cohort::spawn(cohort::command("true"), 1);
                CHECK(co_await group.join());
                for (int round = 0; round < 2000; ++round)
                    if (!co_await group.join())
                        FAIL_CHECK("an ended group has not ended");
            },
            asio::use_future));
    for (auto& each : all)
        each.get();
}

TEST_CASE("threads: a worker outlives the thread that started it, and that thread's context") {
    const leak_guard guard;
    gate hold;
    cohort::group group;
    std::thread([&] {
        asio::io_context io;
        group = start_gated(io, hold, 2);
    }).join();
    CHECK(group.alive() == 2);
    asio::io_context io;
    completed<cohort::report> waited;
    hold.open();
    group.async_wait(asio::bind_executor(io, waited.into()));
    run_out(io);
    CHECK(waited.take().success());
}

TEST_CASE("threads: a group is moved from thread to thread") {
    const leak_guard guard;
    asio::thread_pool pool(1);
    auto group =
        cohort::async_spawn(pool, cohort::command("sleep", 1000), 2, asio::use_future).get();
    for (int i = 0; i < 5; ++i)
        group = std::async(std::launch::async, [g = std::move(group)]() mutable {
                    CHECK(g.alive() == 2);
                    return std::move(g);
                }).get();
    CHECK(group.async_stop(asio::use_future).get().outcomes.size() == 2);
}

}  // namespace

}  // namespace threads_test
