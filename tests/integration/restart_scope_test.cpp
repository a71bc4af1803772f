// SPDX-License-Identifier: BSL-1.0
// options::restart with restart_scope::all, and with restart_on::always.
#include "live_support.hpp"
#include "restart_support.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include <sys/stat.h>

namespace restart_scope_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;
using cohort::restarts;

TEST_CASE("restart scope: every worker starts again, also one that had ended well") {
    const leak_guard guard;
    // Worker 1 fails twice; worker 0 ends well before that, and worker 2 would live on.
    const scratch_directory directory;
    const auto fifo = directory.file("worker 0 lives");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    const auto report =
        ended(cohort::command(
                  "sh", "-c",
                  "case $COHORT_INDEX in 0) : > \"$FIFO\";; 1) cat < \"$FIFO\"; exit "
                  "$((COHORT_ATTEMPT < 2));; 2) [ $COHORT_ATTEMPT = 2 ] || exec sleep 1000;; esac"),
              cohort::options(3)
                  .env("FIFO", fifo)
                  .restart(restarts(2).scope(cohort::restart_scope::all).backoff(5ms, 10ms)));
    CHECK(report.success());
    for (const auto& one : report.outcomes)
        check_history(one, 3);
    CHECK(report.outcomes[2].history[0].cause == cause::stopped);
    CHECK(report.outcomes[2].history[1].cause == cause::stopped);
    // Nobody starts before the last one has ended.
    for (std::size_t attempt = 1; attempt < 3; ++attempt)
        for (const auto& one : report.outcomes)
            for (const auto& other : report.outcomes)
                CHECK(one.history[attempt].started >= other.history[attempt - 1].ended);
}

TEST_CASE("restart scope: the workers' restarts count together") {
    const leak_guard guard;
    const auto failed = thrown_by<cohort::process_exited_exception>(
        failing(99), cohort::options(3).restart(restarts(2).scope(cohort::restart_scope::all)));
    CHECK(failed.failed().attempt == 2);
    for (const auto& one : failed.outcomes())
        CHECK(one.attempt == 2);
}

TEST_CASE("restart scope: a worker that can't be ended for the next round fails the group") {
    const leak_guard guard;
    const auto failed = thrown_by<cohort::process_exited_exception>(
        cohort::command("sh", "-c", "[ $COHORT_INDEX = 0 ] && exit 4; exec sleep 1000"),
        cohort::options(3).grace_period(0s).kill_timeout(0s).restart(
            restarts(1).scope(cohort::restart_scope::all)));
    CHECK_FALSE(failed.failed().success());
}

TEST_CASE("restart scope: nobody of a batch starts in the pause before all start again") {
    const leak_guard guard;
    constexpr auto pause = 1s;
    const auto report =
        ended(cohort::command("sh", "-c", "exit $((COHORT_INDEX == 0 && COHORT_ATTEMPT < 2))"),
              cohort::options(20).at_once(2).restart(
                  restarts(2).scope(cohort::restart_scope::all).backoff(pause, pause)));
    CHECK(report.success());
    const auto& first = report.outcomes.at(0);
    check_history(first, 3);
    // The pause ends a little before an attempt of the first worker starts. Others may start just
    // before that one, so only the first half of the pause is looked at.
    const auto check_start = [&](const cohort::outcome& one) {
        for (const auto& attempt : first.history) {
            const bool is_in_pause =
                one.started > attempt.started - pause && one.started < attempt.started - pause / 2;
            CHECK_FALSE(is_in_pause);
        }
    };
    for (const auto& one : report.outcomes) {
        check_start(one);
        for (const auto& attempt : one.history)
            check_start(attempt);
    }
}

TEST_CASE("restart scope: a batch starts again, workers that ignore SIGTERM too") {
    const leak_guard guard;
    const auto report = ended(
        cohort::command("sh", "-c",
                        "trap '' TERM; [ $COHORT_ATTEMPT = 1 ] && exit 0; [ $COHORT_INDEX = 3 ] && "
                        "exit 1; [ $COHORT_INDEX = 2 ] && exec sleep 1000; exit 0"),
        cohort::options(8).at_once(2).grace_period(50ms).restart(
            restarts(1).scope(cohort::restart_scope::all)));
    CHECK(report.success());
    for (const auto& one : report.outcomes)
        CHECK(one.attempt == (one.index <= 3 ? 1 : 0));
}

namespace {

// More than are dealt with in one turn of the loop.
constexpr int hundreds = 620;

/// Starts a batch of which all workers but the last end well, then lets that one fail.
asio::awaitable<void> fail_last(cohort::group& group, restarts how) {
    gate closed;
    const auto last = cohort::command("sh", "-c", "read line <&8; exit $((COHORT_ATTEMPT < 1))");
    const auto work = cohort::command_for(
        [&](int index) { return index == hundreds - 1 ? last : cohort::command("true"); });
    const auto options = cohort::options(hundreds).at_once(8).error_file(false).restart(how).fd(
        closed.child_end(), gate::number);
    group = co_await cohort::spawn(work, options);
    for (int ended = 1; ended < hundreds; ++ended)
        (void)co_await group.next();
    closed.open();
    (void)co_await group.next();
}

asio::awaitable<void> wait_into(cohort::report& into, restarts how) {
    cohort::group group;
    co_await fail_last(group, how);
    into = co_await group.wait();
}

asio::awaitable<void> stop_into(cohort::report& into, restarts how) {
    cohort::group group;
    co_await fail_last(group, how);
    into = co_await group.stop();
}

}  // namespace

TEST_CASE("restart scope: hundreds that had ended well start again with the last one") {
    const leak_guard guard;
    const auto how = restarts(1).scope(cohort::restart_scope::all);
    cohort::report report;
    run_coroutine(wait_into(report, how));
    CHECK(report.success());
    CHECK(std::ranges::count(report.outcomes, 1, &cohort::outcome::attempt) == hundreds);
    run_coroutine(stop_into(report, restarts(how).backoff(1h, 1h)));
    CHECK_FALSE(report.success());
    CHECK(report.outcomes.size() == hundreds);
}

TEST_CASE("restart scope: all well ends the group, and its stop keeps who ended well") {
    const leak_guard guard;
    const auto how = cohort::options(2).restart(restarts(1).scope(cohort::restart_scope::all));
    CHECK(ended(cohort::command("true"), how).success());
    CHECK(ended(cohort::command("true"), cohort::options(how).nprocs(0)).success());
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command_for([](int index) {
                            return index == 0 ? cohort::command("true")
                                              : cohort::command("sleep", "1000");
                        }),
                        how, started.into());
    run_out(io);
    auto group = started.take();
    completed<cohort::received<cohort::outcome>> end;
    group.async_next(end.into());
    run_out(io);
    CHECK(end.take()->success());
    CHECK(group.waiting() == 0);
    completed<cohort::report> stopped;
    group.async_stop(stopped.into());
    run_out(io);
    const auto report = stopped.take();
    CHECK(report.outcomes.at(0).success());
    CHECK(report.outcomes.at(1).cause == cause::stopped);
}

TEST_CASE("restart scope: on any end, workers that end well start again until none is left") {
    const leak_guard guard;
    const auto report =
        ended(cohort::command("true"),
              cohort::options(2).restart(restarts(3).on(cohort::restart_on::always)));
    CHECK(report.success());
    for (const auto& one : report.outcomes)
        check_history(one, 4);
}

}  // namespace restart_scope_test
