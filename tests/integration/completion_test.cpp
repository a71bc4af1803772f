// SPDX-License-Identifier: BSL-1.0
// How operations complete: which tokens they take, where their handlers run, what they hold
// meanwhile.
#include "counting_allocator.hpp"
#include "live_support.hpp"

#include <asio/bind_allocator.hpp>
#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace completion_test {

namespace {

using namespace std::chrono_literals;
using namespace cohort::test;

TEST_CASE("completion: a plain callback gets the group, and each operation's result") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io.get_executor(), cohort::command("true"), 2, started.into());
    CHECK_FALSE(started.done());
    run_out(io);
    auto group = started.take();
    completed<bool> joined, joined_in_time;
    completed<cohort::report> waited, stopped;
    completed<cohort::received<cohort::outcome>> first;
    group.async_join(joined.into());
    group.async_join(1h, joined_in_time.into());
    group.async_wait(waited.into());
    group.async_next(first.into());
    run_out(io);
    CHECK(joined.take());
    CHECK(joined_in_time.take());
    CHECK(waited.take().success());
    CHECK(first.take()->success());
    group.async_stop(stopped.into());
    CHECK_FALSE(stopped.done());
    run_out(io);
    CHECK(stopped.take().success());
}

TEST_CASE("completion: errors of the plan and of the start arrive through the token") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> no_program, forked, thrown;
    cohort::async_spawn(io, cohort::command("/no/such/program"), 2, no_program.into());
    cohort::async_spawn(io, cohort::closure([](int) {}), 1, forked.into());  // not without fork
    auto make = [](int index) -> cohort::command {
        throw std::out_of_range(std::to_string(index));
    };
    cohort::async_spawn(io, cohort::command_for(make), 2, thrown.into());
    CHECK_FALSE(forked.done());
    CHECK_FALSE(thrown.done());
    run_out(io);
    CHECK(no_program.threw<cohort::spawn_error>());
    CHECK(no_program.code() == std::errc::no_such_file_or_directory);
    CHECK(forked.threw<cohort::spawn_error>());
    CHECK(thrown.threw<std::out_of_range>());
}

TEST_CASE("completion: use_future delivers values and exceptions") {
    const leak_guard guard;
    const watchdog guarded;
    asio::thread_pool pool(1);
    auto group =
        cohort::async_spawn(pool, cohort::command("false"), cohort::options(2), asio::use_future)
            .get();
    CHECK_THROWS_AS(group.async_join(asio::use_future).get(), cohort::process_exited_exception);
    CHECK(group.async_wait(asio::use_future).get().outcomes.size() == 2);
    CHECK(group.async_next(asio::use_future).get()->index >= 0);
    CHECK_THROWS_AS(
        cohort::async_spawn(pool, cohort::command("/no/such"), 1, asio::use_future).get(),
        cohort::spawn_error);
}

TEST_CASE("completion: every operation takes detached") {
    const leak_guard guard;
    asio::io_context io;
    cohort::async_spawn(io, cohort::command("sleep", 1000), 2, asio::detached);
    run_out(io);  // the group is dropped by its completion, and stopped
}

TEST_CASE("completion: handlers may be move-only") {
    const leak_guard guard;
    asio::io_context io;
    int calls = 0;
    auto token = [&calls](std::unique_ptr<int> add) {
        return [&calls, add = std::move(add)](std::exception_ptr, auto&&) { calls += *add; };
    };
    cohort::group group;
    cohort::async_spawn(io, cohort::command("true"), 1,
                        [&group, only = std::make_unique<int>(1)](
                            std::exception_ptr, cohort::group g) { group = std::move(g); });
    run_out(io);
    group.async_join(token(std::make_unique<int>(1)));
    group.async_join(1h, token(std::make_unique<int>(10)));
    group.async_wait(token(std::make_unique<int>(100)));
    group.async_next(token(std::make_unique<int>(1000)));
    group.async_stop(token(std::make_unique<int>(10000)));
    run_out(io);
    CHECK(calls == 11111);
}

TEST_CASE("completion: a handler that is an lvalue is copied, and can be used again") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 1);
    int calls = 0;
    auto handler = [&calls, keep = std::make_shared<int>(1)](std::exception_ptr, bool) {
        calls += *keep;
    };
    group.async_join(0s, handler);
    group.async_join(0s, handler);
    run_out(io);
    CHECK(calls == 2);
}

TEST_CASE("completion: a handler runs on its own executor") {
    const leak_guard guard;
    asio::io_context io;
    asio::thread_pool pool(1);
    std::promise<std::thread::id> of_pool;
    asio::post(pool, [&] { of_pool.set_value(std::this_thread::get_id()); });
    const auto pool_thread = of_pool.get_future().get();

    std::promise<std::thread::id> of_spawn, of_join;
    std::promise<cohort::group> started;
    cohort::async_spawn(io, cohort::command("true"), 1,
                        asio::bind_executor(pool, [&](std::exception_ptr, cohort::group g) {
                            of_spawn.set_value(std::this_thread::get_id());
                            started.set_value(std::move(g));
                        }));
    auto group = started.get_future().get();
    CHECK(of_spawn.get_future().get() == pool_thread);
    CHECK(group.get_executor() == asio::any_io_executor(io.get_executor()));
    group.async_join(asio::bind_executor(
        pool, [&](std::exception_ptr, bool) { of_join.set_value(std::this_thread::get_id()); }));
    CHECK(of_join.get_future().get() == pool_thread);
}

TEST_CASE("completion: a handler bound to a strand runs in it, alone") {
    const leak_guard guard;
    const watchdog guarded;
    asio::thread_pool pool(3);
    auto group = cohort::async_spawn(pool, cohort::command("true"), 4, asio::use_future).get();
    auto strand = asio::make_strand(pool);
    constexpr int count = 200;
    int calls = 0;  // not atomic: that is the point
    std::promise<void> all;
    for (int i = 0; i < count; ++i)
        group.async_join(asio::bind_executor(strand, [&](std::exception_ptr, bool) {
            CHECK(strand.running_in_this_thread());
            if (++calls == count)
                all.set_value();
        }));
    all.get_future().get();
    CHECK(calls == count);
}

TEST_CASE("completion: a handler is never called inside the initiating call") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command("true"), 1, started.into());
    run_out(io);
    auto group = started.take();
    completed<bool> first, second;
    completed<cohort::report> stopped;
    group.async_join(first.into());
    run_out(io);
    int depth = 0;  // the group has ended: each of these could answer at once
    asio::post(io, [&] {
        ++depth;
        group.async_join([&](std::exception_ptr, bool) { CHECK(depth == 0); });
        group.async_stop([&](std::exception_ptr, cohort::report) { CHECK(depth == 0); });
        cohort::group().async_wait([](std::exception_ptr, cohort::report) {});
        --depth;
    });
    run_out(io);
    CHECK(first.well());
}

TEST_CASE("completion: the handler's allocator is used on its own threads only, and has all its "
          "memory back before the call") {
    const leak_guard guard;
    asio::io_context io;
    allocations counts;
    const counting_allocator<int> allocator(counts);
    cohort::group group;
    int out_at_call = -1;
    const auto bound = [&](auto handler) {
        return asio::bind_allocator(allocator,
                                    asio::bind_executor(io.get_executor(), std::move(handler)));
    };
    cohort::async_spawn(io, cohort::command("true"), 1,
                        bound([&](std::exception_ptr, cohort::group g) {
                            out_at_call = counts.out;
                            group = std::move(g);
                        }));
    CHECK(counts.given > 0);
    run_out(io);
    CHECK(out_at_call == 0);
    out_at_call = -1;
    group.async_join(bound([&](std::exception_ptr, bool) { out_at_call = counts.out; }));
    CHECK(counts.out > 0);
    run_out(io);
    CHECK(out_at_call == 0);
    CHECK(counts.elsewhere == 0);
}

TEST_CASE("completion: a pending operation is work for its context; a live group is none") {
    const leak_guard guard;
    asio::io_context io;
    gate hold;
    auto group = start_gated(io, hold, 2);
    {
        const watchdog guarded;
        CHECK(io.run() == 0);  // returns at once, though the workers live
        io.restart();
    }
    completed<bool> joined;
    group.async_join(joined.into());
    CHECK(io.poll() == 0);
    CHECK_FALSE(io.stopped());
    hold.open();
    run_out(io);
    CHECK(joined.take());
}

TEST_CASE("completion: the executor of the group is the default of its handlers") {
    const leak_guard guard;
    const watchdog guarded;
    asio::io_context io;
    auto strand = asio::make_strand(io);
    completed<cohort::group> started;
    cohort::async_spawn(strand, cohort::command("true"), 1, started.into());
    run_out(io);
    auto group = started.take();
    bool inside = false;
    group.async_join([&](std::exception_ptr, bool) { inside = strand.running_in_this_thread(); });
    run_out(io);
    CHECK(inside);
}

TEST_CASE("completion: an empty group completes on Asio's system executor, a group without workers "
          "on its own") {
    const leak_guard guard;
    const watchdog guarded;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command("true"), 0, started.into());
    run_out(io);
    auto moved_from = started.take();
    auto none = std::move(moved_from);
    const auto here = std::this_thread::get_id();
    std::thread::id of_none;
    none.async_join([&](std::exception_ptr error, bool all) {
        CHECK((!error && all));
        of_none = std::this_thread::get_id();
    });
    run_out(io);
    CHECK(of_none == here);
    cohort::group fresh;
    for (auto* const empty : {&moved_from, &fresh}) {
        std::promise<std::thread::id> of_empty;
        empty->async_join([&](std::exception_ptr error, bool) {
            CHECK_THROWS_AS(std::rethrow_exception(error), std::logic_error);
            of_empty.set_value(std::this_thread::get_id());
        });
        CHECK(of_empty.get_future().get() != here);  // though nobody runs a context here
    }
}

TEST_CASE("completion: joins that pend when the group is dropped end with the group") {
    const leak_guard guard;
    asio::io_context io;
    completed<bool> first, second;
    completed<cohort::report> waited;
    {
        auto group = start_ready(io, sleeper(), 2);
        group.async_join(first.into());
        group.async_join(1h, second.into());
        group.async_wait(waited.into());
    }
    run_out(io);
    CHECK(first.threw<cohort::group_stopped>());
    CHECK(second.threw<cohort::group_stopped>());
    CHECK(waited.take().outcomes[0].cause == cohort::cause::stopped);
}

TEST_CASE("completion: a dropped live group is stopped and reaped in the background") {
    const leak_guard guard;
    asio::io_context io;
    { const auto group = start_ready(io, sleeper(), 3); }
    { const auto group = start_ready(io, stubborn(), 1, cohort::options(1).grace_period(10ms)); }
    auto group = start_ready(io, sleeper(), 1);
    group = start_ready(io, sleeper(), 1);  // by assignment too
    group = cohort::group();
}

TEST_CASE("completion: each of several pending next calls gets another worker") {
    const leak_guard guard;
    asio::io_context io;
    gate hold;
    auto group = start_gated(io, hold, 3);
    completed<cohort::received<cohort::outcome>> told[4];
    for (auto& each : told)
        group.async_next(each.into());
    hold.open();
    run_out(io);
    std::vector<int> seen(3);
    for (int i = 0; i < 3; ++i)
        ++seen[static_cast<std::size_t>(told[i].take()->index)];
    CHECK(seen == std::vector<int>{1, 1, 1});
    CHECK(told[3].take().ended());
}

}  // namespace

}  // namespace completion_test
