// SPDX-License-Identifier: BSL-1.0
// Cancelled calls of pools: one that waits touches no worker, one that runs its own only.
#include "pool_support.hpp"
#include "sanitizers.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <memory>
#include <vector>

namespace pool_cancel_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using asio::cancellation_type;
using cohort::task;

namespace {

/// A pool of one worker whose tasks can say that they run, and wait.
struct held_pool {
    explicit held_pool(asio::any_io_executor executor) : up(executor) {}
    asio::awaitable<void> start() {
        pool = co_await cohort::start_pool(
            pool_of(1).fd(up.child_end(), ready::number).fd(hold.child_end(), gate::number));
        pid = co_await pool.submit(task<own_pid>());
    }

    ready up;
    gate hold;
    cohort::pool pool;
    int pid = 0;
};

int obey_stop() {
    wait_for_stop();
    return 1;
}

}  // namespace

POOL_TEST("pool cancel: a call that waits is taken out, and no worker is touched") {
    for (const auto type :
         {cancellation_type::total, cancellation_type::partial, cancellation_type::terminal}) {
        held_pool held(executor);
        co_await held.start();
        completed<int> running;
        held.pool.async_submit(task<wait_for_gate>(), running.into());
        co_await held.up.wait();
        asio::cancellation_signal first_stop;
        asio::cancellation_signal second_stop;
        completed<int> first;
        completed<int> second;
        held.pool.async_submit(task<add>(1, 2), first.into(first_stop));
        held.pool.async_submit(task<add>(1, 2), second.into(second_stop));
        second_stop.emit(type);
        co_await until(executor, [&] { return second.done(); });
        CHECK(second.aborted());
        CHECK_FALSE(first.done());
        first_stop.emit(type);
        co_await until(executor, [&] { return first.done(); });
        CHECK(first.aborted());
        held.hold.open();
        co_await until(executor, [&] { return running.done(); });
        CHECK(running.take() == held.pid);
        CHECK(held.pool.stats().lost == 0);
        CHECK(held.pool.stats().waiting == 0);
    }
}

POOL_TEST("pool cancel: total drops the result of a call that runs, and its worker goes on") {
    held_pool held(executor);
    co_await held.start();
    asio::cancellation_signal stop;
    completed<int> running;
    held.pool.async_submit(task<wait_for_gate>(), running.into(stop));
    co_await held.up.wait();
    stop.emit(cancellation_type::total);
    co_await until(executor, [&] { return running.done(); });
    CHECK(running.aborted());
    CHECK(held.pool.stats().idle == 0);
    held.hold.open();
    CHECK(co_await held.pool.submit(task<own_pid>()) == held.pid);
    CHECK(held.pool.stats().done == 3);
    CHECK(held.pool.stats().lost == 0);
}

POOL_TEST("pool cancel: partial and terminal stop the worker of a call that runs") {
    for (const auto type : {cancellation_type::partial, cancellation_type::terminal}) {
        held_pool held(executor);
        co_await held.start();
        asio::cancellation_signal stop;
        completed<int> running;
        held.pool.async_submit(task<hang_forever>(), running.into(stop));
        co_await held.up.wait();
        stop.emit(type);
        co_await until(executor, [&] { return running.done(); });
        CHECK(running.aborted());
        // It has completed when the worker was gone.
        CHECK(::kill(held.pid, 0) != 0);
        CHECK(co_await held.pool.submit(task<own_pid>()) != held.pid);
        CHECK(held.pool.stats().lost == 1);
    }
}

POOL_TEST("pool cancel: a task that obeys its stop token ends its worker within the grace") {
    ready up(executor);
    auto pool =
        co_await cohort::start_pool(pool_of(1).grace_period(1h).fd(up.child_end(), ready::number));
    asio::cancellation_signal stop;
    completed<int> running;
    pool.async_submit(task<obey_stop>(), running.into(stop));
    co_await up.wait();
    stop.emit(cancellation_type::terminal);
    co_await until(executor, [&] { return running.done(); });
    CHECK(running.aborted());
}

POOL_TEST("pool cancel: at the moment of its dispatch, a call is either taken out or stopped") {
    auto pool = co_await cohort::start_pool(1);
    long ended = 0;
    const long rounds = how_many(2000, 300);
    for (long i = 0; i < rounds; ++i) {
        asio::cancellation_signal stop;
        completed<int> cancelled;
        completed<int> next;
        pool.async_submit(task<add>(1, 2), cancelled.into(stop));
        pool.async_submit(task<add>(3, 4), next.into());
        if (i % 2 == 1)
            co_await asio::post(executor, asio::use_awaitable);
        stop.emit(i % 4 < 2 ? cancellation_type::total : cancellation_type::terminal);
        co_await until(executor, [&] { return cancelled.done() && next.done(); });
        CHECK((cancelled.aborted() || cancelled.take() == 3));
        CHECK(next.take() == 7);
        ++ended;
    }
    CHECK(ended == rounds);
    CHECK(pool.stats().waiting == 0);
}

POOL_TEST("pool cancel: a context that is destroyed stops the tasks of its calls") {
    held_pool held(executor);
    co_await held.start();
    int called = 0;
    {
        asio::io_context other;
        held.pool.async_submit(
            task<hang_forever>(),
            asio::bind_executor(other, [&](std::exception_ptr, int) { ++called; }));
        held.pool.async_submit(task<add>(1, 2), asio::bind_executor(other, [&](std::exception_ptr,
                                                                               int) { ++called; }));
        co_await held.up.wait();
    }
    CHECK(co_await held.pool.submit(task<own_pid>()) != held.pid);
    CHECK(called == 0);
    CHECK(held.pool.stats().waiting == 0);
}

POOL_TEST("pool cancel: a start that is cancelled leaves no worker") {
    asio::cancellation_signal stop;
    completed<cohort::pool> started;
    cohort::async_start_pool(executor, pool_of(2).initializer(task<hang_forever>()),
                             started.into(stop));
    stop.emit(cancellation_type::total);
    co_await until(executor, [&] { return started.done(); });
    CHECK(started.aborted());
}

TEST_CASE("pool cancel: a pool whose context is destroyed during its start is stopped") {
    have_server();
    const leak_guard guard;
    {
        asio::io_context io;
        cohort::async_start_pool(io, pool_of(2).initializer(task<hang_forever>()),
                                 [](std::exception_ptr, cohort::pool) {});
    }
}

}  // namespace pool_cancel_test
