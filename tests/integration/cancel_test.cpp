// SPDX-License-Identifier: BSL-1.0
// Cancellation by Asio's types of what waits for the end of the group: total stops waiting, partial
// and terminal stop the group.
#include "live_support.hpp"

#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/experimental/parallel_group.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace cancel_test {

using namespace std::chrono_literals;
using namespace cohort::test;
using asio::cancellation_type;

using maybe_outcome = cohort::received<cohort::outcome>;

bool is_aborted(const std::system_error& e) { return e.code() == asio::error::operation_aborted; }

TEST_CASE("cancel: total ends a join at once, and the workers run on") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 2);
    asio::cancellation_signal cancel, cancel_timed, cancel_wait, cancel_next;
    completed<bool> joined, joined_in_time;
    completed<cohort::report> waited;
    completed<maybe_outcome> told;
    group.async_join(joined.into(cancel));
    group.async_join(1h, joined_in_time.into(cancel_timed));
    group.async_wait(waited.into(cancel_wait));
    group.async_next(told.into(cancel_next));
    for (auto* each : {&cancel, &cancel_timed, &cancel_wait, &cancel_next})
        each->emit(cancellation_type::total);
    CHECK_FALSE(joined.done());  // emitting only enqueues
    run_out(io);
    CHECK(joined.aborted());
    CHECK(joined_in_time.aborted());
    CHECK(waited.aborted());
    CHECK(told.aborted());
    CHECK(group.alive() == 2);
}

TEST_CASE("cancel: all cancellation types together count as total") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 1);
    asio::cancellation_signal cancel;
    completed<bool> joined;
    group.async_join(joined.into(cancel));
    cancel.emit(cancellation_type::all);
    run_out(io);
    CHECK(joined.aborted());
    CHECK(group.alive() == 1);
}

TEST_CASE("cancel: terminal and partial run the ladder, and the join completes when all are gone") {
    const leak_guard guard;
    for (const auto type : {cancellation_type::terminal, cancellation_type::partial}) {
        asio::io_context io;
        auto group = start_ready(io, stubborn(), 2, cohort::options(1).grace_period(400ms));
        asio::cancellation_signal cancel;
        int alive = -1;
        completed<bool> joined;
        // Its own timeout passes while the ladder runs, not before: it is lifted.
        group.async_join(
            200ms, asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr e, bool all) {
                alive = group.alive();
                joined.into()(e, all);
            }));
        cancel.emit(type);
        run_out(io);
        CHECK(joined.aborted());
        CHECK(alive == 0);
        for (const auto& outcome : group.outcomes())
            CHECK(outcome.cause == cohort::cause::killed);
    }
}

TEST_CASE("cancel: a group that had ended before gives its real result") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command("false"), 1, started.into());
    run_out(io);
    auto group = started.take();
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    run_out(io);
    asio::cancellation_signal cancel;
    completed<bool> joined;
    group.async_join(joined.into(cancel));
    cancel.emit(cancellation_type::terminal);
    run_out(io);
    CHECK(joined.threw<cohort::process_exited_exception>());
    cancel.emit(cancellation_type::terminal);  // after the end of the operation: nothing
}

TEST_CASE("cancel: one joiner's terminal cancel stops the group for all the others") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 3);
    asio::cancellation_signal cancel;
    completed<bool> cancelled, other, other_in_time;
    completed<cohort::report> waited;
    group.async_join(other.into());
    group.async_join(cancelled.into(cancel));
    group.async_join(1h, other_in_time.into());
    group.async_wait(waited.into());
    cancel.emit(cancellation_type::terminal);
    run_out(io);
    CHECK(cancelled.aborted());
    CHECK(other.threw<cohort::group_stopped>());
    CHECK(other_in_time.threw<cohort::group_stopped>());
    CHECK(waited.take().outcomes[2].cause == cohort::cause::stopped);
}

TEST_CASE("cancel: terminal on wait stops the group, and it completes at the group's end") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 2);
    asio::cancellation_signal cancel;
    completed<cohort::report> waited;
    group.async_wait(waited.into(cancel));
    cancel.emit(cancellation_type::terminal);
    run_out(io);
    CHECK(waited.aborted());
    CHECK(group.alive() == 0);
}

TEST_CASE("cancel: a total cancel ends the wait for stop, and the ladder goes on") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, stubborn(), 1, cohort::options(1).grace_period(100ms));
    asio::cancellation_signal total, terminal;
    completed<cohort::report> stopped, stopped_too;
    completed<bool> joined;
    group.async_stop(stopped.into(total));
    group.async_stop(stopped_too.into(terminal));
    group.async_join(joined.into());
    total.emit(cancellation_type::total);
    terminal.emit(cancellation_type::terminal);
    run_out(io);
    CHECK(stopped.aborted());
    CHECK(stopped_too.aborted());
    CHECK(joined.threw<cohort::group_stopped>());
}

TEST_CASE("cancel: join || timer leaves no process behind, whichever side wins") {
    const leak_guard guard;
    using namespace asio::experimental::awaitable_operators;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 2);
    run_coroutine(io, [](cohort::group& g) -> asio::awaitable<void> {
        asio::steady_timer timer(co_await asio::this_coro::executor, 10ms);
        const auto result = co_await (g.join() || timer.async_wait(asio::use_awaitable));
        CHECK(result.index() == 1);
        CHECK(g.alive() == 0);  // join completes when all are gone, and || waits for both
        CHECK_THROWS_AS(co_await g.join(), cohort::group_stopped);

        auto short_lived = co_await cohort::spawn(cohort::command("true"), 2);
        timer.expires_at(asio::steady_timer::time_point::max());
        const auto first = co_await (short_lived.join() || timer.async_wait(asio::use_awaitable));
        CHECK(std::get<0>(first));
    }(group));
}

TEST_CASE("cancel: make_parallel_group cancels with all types, so that workers run on") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 2);
    asio::steady_timer timer(io, 10ms);
    std::exception_ptr error;
    std::array<std::size_t, 2> order{};
    asio::experimental::make_parallel_group(group.async_join(asio::experimental::deferred),
                                            timer.async_wait(asio::experimental::deferred))
        .async_wait(asio::experimental::wait_for_one(),
                    [&](std::array<std::size_t, 2> o, std::exception_ptr e, bool, std::error_code) {
                        order = o;
                        error = e;
                    });
    run_out(io);
    CHECK(order[0] == 1);
    REQUIRE(error);
    CHECK_THROWS_AS(std::rethrow_exception(error), std::system_error);
    CHECK(group.alive() == 2);
}

TEST_CASE("cancel: a spawn that is cancelled at once starts nothing that stays") {
    const leak_guard guard;
    for (const auto type :
         {cancellation_type::terminal, cancellation_type::partial, cancellation_type::total}) {
        asio::io_context io;
        asio::cancellation_signal cancel;
        completed<cohort::group> started;
        cohort::async_spawn(io, cohort::command("sleep", 1000), 5, started.into(cancel));
        cancel.emit(type);
        run_out(io);
        CHECK((started.aborted() || started.well()));  // the machine may have been faster
    }
}

/// Spawns 200 workers, cancels when `after` of them have said that they are ready.
asio::awaitable<void> cancel_in_the_middle(int after) {
    using namespace asio::experimental::awaitable_operators;
    ready up(co_await asio::this_coro::executor);
    auto how = cohort::options(200).grace_period(5s).fd(up.child_end(), ready::number);
    auto spawned = co_await (cohort::spawn(sleeper(), std::move(how)) || up.wait(after));
    CHECK(spawned.index() == 1);
}

TEST_CASE("cancel: a spawn of 200 workers that is cancelled at any moment leaves nothing") {
    for (const int after : {1, 7, 60}) {
        leak_guard guard;
        run_coroutine(cancel_in_the_middle(after));
        CHECK(processes_left(guard) == "");  // when the operation has completed, all are reaped
    }
}

TEST_CASE("cancel: a run that is cancelled stops its group") {
    leak_guard guard;
    using namespace asio::experimental::awaitable_operators;
    run_coroutine([]() -> asio::awaitable<void> {
        ready up(co_await asio::this_coro::executor);
        auto how = cohort::options(3).fd(up.child_end(), ready::number);
        const auto first = co_await (cohort::run(sleeper(), std::move(how)) || up.wait(3));
        CHECK(first.index() == 1);
    }());
    CHECK(processes_left(guard) == "");
}

TEST_CASE(
    "cancel: a run cancelled between its start and its wait stops the group before it throws") {
    leak_guard guard;
    for (int round = 0; round < 10; ++round) {
        asio::io_context io, elsewhere;
        asio::cancellation_signal cancel;
        ready up(elsewhere.get_executor());
        std::string left = "not called";
        const auto told = [&](std::exception_ptr, cohort::report) { left = processes_left(guard); };
        asio::co_spawn(io,
                       cohort::run(sleeper(), cohort::options(2).fd(up.child_end(), ready::number)),
                       asio::bind_cancellation_slot(cancel.slot(), told));
        io.poll();  // begins the start; the start's completion is posted, and does not run yet
        run_coroutine(elsewhere, up.wait(2));
        cancel.emit(cancellation_type::terminal);
        run_out(io);
        CHECK(left == "");
    }
}

TEST_CASE("cancel: after a cancel a coroutine resets its state and awaits again") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, stubborn(), 1, cohort::options(1).grace_period(50ms));
    asio::cancellation_signal cancel;
    bool finished = false;
    asio::co_spawn(
        io,
        [](cohort::group& g, bool& end) -> asio::awaitable<void> {
            try {
                co_await g.join();
                FAIL("not cancelled");
            } catch (const std::system_error& e) {
                CHECK(is_aborted(e));
            }
            g.request_stop();  // always works
            CHECK_THROWS_AS(co_await g.join(), std::system_error);
            co_await asio::this_coro::reset_cancellation_state();
            CHECK_THROWS_AS(co_await g.join(), cohort::group_stopped);
            CHECK((co_await g.stop()).outcomes.size() == 1);
            end = true;
        }(group, finished),
        asio::bind_cancellation_slot(cancel.slot(), [](std::exception_ptr e) { CHECK_FALSE(e); }));
    asio::post(io, [&] { cancel.emit(cancellation_type::terminal); });
    run_out(io);
    CHECK(finished);
}

TEST_CASE("cancel: request_stop stops the group after a total cancel") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 2);
    asio::cancellation_signal cancel;
    completed<bool> cancelled, joined;
    group.async_join(cancelled.into(cancel));
    cancel.emit(cancellation_type::total);
    run_out(io);
    CHECK(cancelled.aborted());
    group.request_stop();
    group.request_stop();
    group.async_join(joined.into());
    run_out(io);
    CHECK(joined.threw<cohort::group_stopped>());
}

TEST_CASE("cancel: a total cancel after a terminal one ends the wait at once") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, stubborn(), 1, cohort::options(1).grace_period(1h));
    asio::cancellation_signal cancel;
    completed<bool> joined;
    group.async_join(joined.into(cancel));
    cancel.emit(cancellation_type::terminal);
    cancel.emit(cancellation_type::total);
    run_out(io);
    CHECK(joined.aborted());
    CHECK(group.alive() == 1);
    group.signal(SIGKILL);
}

TEST_CASE("cancel: a cancel that races with the end gives one of the two results, once") {
    const leak_guard guard;
    for (int round = 0; round < 100; ++round) {
        asio::io_context io;
        asio::cancellation_signal cancel;
        completed<cohort::group> started;
        cohort::async_spawn(io, cohort::command("true"), 1, started.into());
        run_out(io);
        auto group = started.take();
        completed<bool> joined;
        group.async_join(joined.into(cancel));
        if (round % 2 == 0)
            io.poll();
        cancel.emit(round % 4 < 2 ? cancellation_type::terminal : cancellation_type::total);
        run_out(io);
        CHECK(joined.calls() == 1);
        CHECK((joined.well() || joined.aborted()));
    }
}

}  // namespace cancel_test
