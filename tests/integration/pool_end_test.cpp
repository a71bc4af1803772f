// SPDX-License-Identifier: BSL-1.0
// How pools end: drained, stopped or dropped, and nobody is left.
#include "pool_support.hpp"

#include <cohort/cohort.hpp>

#include <algorithm>
#include <deque>

namespace pool_end_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::task;

namespace {

/// Says that it runs, ignores the stop signal, and sleeps for ever.
int ignore_stops() {
    std::signal(SIGTERM, SIG_IGN);
    return hang_forever();
}
struct slow_to_end {
    ~slow_to_end() {
        for (;;)
            ::pause();
    }
};
int leave_slow_end() {
    static slow_to_end here;
    return 1;
}

}  // namespace

POOL_TEST("pool end: drain() lets what runs and what waits end") {
    ready up(executor);
    gate hold;
    auto pool = co_await cohort::start_pool(
        pool_of(1).fd(up.child_end(), ready::number).fd(hold.child_end(), gate::number));
    std::deque<completed<int>> calls(5);
    for (auto& each : calls)
        pool.async_submit(task<wait_for_gate>(), each.into());
    co_await up.wait();
    CHECK_FALSE(co_await pool.drain(0s));
    CHECK(co_await is_aborted(pool.submit(task<add>(1, 2))));
    CHECK(co_await is_aborted(pool.recycle()));
    CHECK(co_await is_aborted(pool.resize(3)));
    hold.open();
    co_await pool.drain();
    CHECK(std::ranges::all_of(calls, &completed<int>::well));
    CHECK(pool.stats().size == 0);
    CHECK(co_await pool.drain(0s));
    co_await pool.stop();
}

POOL_TEST("pool end: stop() lets what runs end, and aborts what waits") {
    ready up(executor);
    gate hold;
    auto pool = co_await cohort::start_pool(pool_of(1)
                                                .drain_period(1h)
                                                .fd(up.child_end(), ready::number)
                                                .fd(hold.child_end(), gate::number));
    completed<int> running;
    pool.async_submit(task<wait_for_gate>(), running.into());
    std::deque<completed<int>> waiting(5);
    for (auto& each : waiting)
        pool.async_submit(task<add>(1, 2), each.into());
    co_await up.wait();
    completed<int> first;
    completed<int> second;
    pool.async_stop([&](std::exception_ptr error) { first.into()(std::move(error), 0); });
    pool.async_stop([&](std::exception_ptr error) { second.into()(std::move(error), 0); });
    co_await until(executor, [&] { return std::ranges::all_of(waiting, &completed<int>::done); });
    CHECK(std::ranges::all_of(waiting, &completed<int>::aborted));
    CHECK_FALSE(first.done());
    hold.open();
    co_await until(executor, [&] { return first.done() && second.done(); });
    CHECK(first.well());
    CHECK(second.well());
    CHECK(running.well());
    CHECK(pool.stats().size == 0);
}

POOL_TEST("pool end: stop() stops what runs after the drain period, with SIGKILL if need be") {
    ready up(executor);
    auto pool = co_await cohort::start_pool(
        pool_of(1).drain_period(10ms).grace_period(10ms).fd(up.child_end(), ready::number));
    completed<int> running;
    pool.async_submit(task<ignore_stops>(), running.into());
    co_await up.wait();
    co_await pool.stop();
    CHECK(running.aborted());
    CHECK(pool.stats().lost == 1);
}

POOL_TEST("pool end: an idle worker that hangs in its end gets the ladder") {
    auto pool = co_await cohort::start_pool(pool_of(1).grace_period(10ms));
    CHECK(co_await pool.submit(task<leave_slow_end>()) == 1);
    co_await pool.stop();
    CHECK(pool.stats().size == 0);
}

POOL_TEST("pool end: a pool that is dropped aborts its calls, and stops its workers") {
    ready up(executor);
    completed<int> running;
    completed<int> waiting;
    {
        auto pool = co_await cohort::start_pool(pool_of(1).fd(up.child_end(), ready::number));
        pool.async_submit(task<hang_forever>(), running.into());
        pool.async_submit(task<add>(1, 2), waiting.into());
        co_await up.wait();
    }
    co_await until(executor, [&] { return running.done() && waiting.done(); });
    CHECK(running.aborted());
    CHECK(waiting.aborted());
}

POOL_TEST("pool end: a drop aborts what is still wished") {
    ready up(executor);
    completed<int> running;
    completed<bool> drained;
    completed<int> renewed;
    {
        auto pool = co_await cohort::start_pool(pool_of(1).fd(up.child_end(), ready::number));
        pool.async_submit(task<hang_forever>(), running.into());
        co_await up.wait();
        pool.async_recycle([&](std::exception_ptr error) { renewed.into()(std::move(error), 0); });
        pool.async_drain(1h, drained.into());
    }
    co_await until(executor, [&] { return running.done() && drained.done() && renewed.done(); });
    CHECK(running.aborted());
    CHECK(drained.aborted());
    CHECK(renewed.aborted());
}

POOL_TEST("pool end: a stop during the pool's growth leaves no worker") {
    for (int i = 0; i < 20; ++i) {
        auto pool = co_await cohort::start_pool(pool_of(4).at_least(0));
        std::deque<completed<int>> calls(8);
        for (auto& each : calls)
            pool.async_submit(task<own_pid>(), each.into());
        co_await pool.stop();
        CHECK(std::ranges::all_of(calls, &completed<int>::done));
        CHECK(pool.stats().size == 0);
    }
}

POOL_TEST("pool end: kill -9 of all workers with calls waiting loses only those that ran") {
    auto pool = co_await cohort::start_pool(pool_of(3).at_least(3));
    std::deque<completed<int>> calls(300);
    for (auto& each : calls)
        pool.async_submit(task<add>(1, 2), each.into());
    for (const auto& worker : pool.workers())
        ::kill(worker.pid, SIGKILL);
    co_await until(executor, [&] { return std::ranges::all_of(calls, &completed<int>::done); });
    const auto lost = std::ranges::count_if(calls, [](const auto& each) {
        return each.template threw<cohort::process_exited_exception>();
    });
    CHECK(lost <= 3);
    CHECK(std::ranges::count_if(calls, &completed<int>::well) == 300 - lost);
    CHECK(pool.stats().lost == static_cast<std::uint64_t>(lost));
}

}  // namespace pool_end_test
