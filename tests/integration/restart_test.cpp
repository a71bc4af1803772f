// SPDX-License-Identifier: BSL-1.0
// options::restart: workers that start again after they have ended.
#include "live_support.hpp"
#include "methods.hpp"
#include "restart_support.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace restart_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;
using cohort::restarts;

namespace {

/// Fails in its first attempts.
int third_time_lucky(int index) {
    if (cohort::this_worker::attempt() < 2)
        throw std::runtime_error("attempt " + std::to_string(cohort::this_worker::attempt()));
    return index;
}

/// Says that it is ready, and waits until it is killed.
cohort::command waiting_command() {
    return cohort::command("sh", "-c", "echo >&9; exec sleep 1000");
}

}  // namespace

TEST_CASE("restart: workers that fail start again, by every start method") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        const auto report = ended(cohort::function<third_time_lucky>(),
                                  by(method, 4).restart(restarts(2)).stack_on_stop(true));
        CHECK(report.success());
        std::set<pid_t> pids;
        for (const auto& one : report.outcomes) {
            check_history(one, 3);
            CHECK(one.result<int>() == one.index);
            REQUIRE(one.history.at(1).error);
            CHECK(one.history.at(1).error->message == "attempt 1");
            for (const auto& attempt : one.history)
                pids.insert(attempt.pid);
        }
        CHECK(pids.size() == 12);
    }
}

TEST_CASE("restart: when no restart is left the last failure ends the group") {
    const leak_guard guard;
    const auto failed = thrown_by<cohort::process_exited_exception>(
        cohort::command("sh", "-c",
                        "[ $COHORT_INDEX = 1 ] && exit $((10 + COHORT_ATTEMPT)); exec "
                        "sleep 1000"),
        cohort::options(3).restart(restarts(3).backoff(1ms, 4ms)));
    CHECK(failed.error_index() == 1);
    CHECK(failed.failed().status.exit_code() == 13);
    check_history(failed.failed(), 4);
    for (int attempt = 0; attempt < 4; ++attempt)
        CHECK(failed.failed().history[static_cast<std::size_t>(attempt)].status.exit_code() ==
              10 + attempt);
    for (const int index : {0, 2}) {
        const auto& other = failed.outcomes()[static_cast<std::size_t>(index)];
        CHECK(other.cause == cause::stopped);
        CHECK(other.history.empty());
    }
    CHECK(to_string(failed.failed()).find("attempt 3") != std::string::npos);
}

TEST_CASE("restart: workers know their attempt, and not that of the caller") {
    const leak_guard guard;
    const char* const show = "echo $COHORT_ATTEMPT $TORCHELASTIC_RESTART_COUNT "
                             "$TORCHELASTIC_MAX_RESTARTS; exit $((COHORT_ATTEMPT < 1))";
    ::setenv("COHORT_ATTEMPT", "77", 1);
    const auto report = ended(cohort::command("sh", "-c", show),
                              cohort::options(1).restart(5).stdout_to(cohort::capture()));
    const auto none = ended(cohort::command("sh", "-c", "echo \"$COHORT_ATTEMPT\""),
                            cohort::options(1).stdout_to(cohort::capture()));
    ::unsetenv("COHORT_ATTEMPT");
    const auto& last = report.outcomes.at(0);
    check_history(last, 2);
    CHECK(last.history[0].out.text() == "0 0 5\n");
    CHECK(last.out.text() == "1 1 5\n");
    CHECK(none.outcomes.at(0).out.text() == "\n");
}

TEST_CASE("restart: next tells every end, in order") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, failing(2), cohort::options(5).at_once(2).restart(2), started.into());
    run_out(io);
    auto group = started.take();
    std::vector<cohort::outcome> ends;
    run_coroutine(io,
                  [](cohort::group& of, std::vector<cohort::outcome>& to) -> asio::awaitable<void> {
                      while (auto one = co_await of.next())
                          to.push_back(std::move(*one));
                  }(group, ends));
    REQUIRE(ends.size() == 15);
    std::vector<int> attempts(5);
    for (const auto& one : ends) {
        CHECK(one.attempt == attempts[static_cast<std::size_t>(one.index)]++);
        CHECK(one.restarted == (one.attempt < 2));
        CHECK(one.history.size() == (one.restarted ? 0 : 3));
    }
    CHECK(group.waiting() == 0);
    CHECK(group.outcomes().size() == 5);
}

TEST_CASE("restart: nobody asks for the ends of a worker that fails again and again") {
    const leak_guard guard;
    const int count = how_many(1300, 200);
    const auto report = ended(failing(count), cohort::options(1).restart(count));
    CHECK(report.success());
    const auto& last = report.outcomes.at(0);
    CHECK(last.attempt == count);
    REQUIRE(last.history.size() == 100);
    CHECK(last.history[0].attempt == 0);
    CHECK(last.history[1].attempt == count - 98);
    CHECK(report.elapsed == last.ended - last.history[0].started);
}

TEST_CASE("restart: a stop, a drop and a time limit win over a pause") {
    const leak_guard guard;
    const auto how = cohort::options(3).restart(restarts(9).backoff(1h, 1h));
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, failing(9), how, started.into());
    run_out(io);
    {
        auto group = started.take();
        for (int worker = 0; worker < 3; ++worker) {
            completed<cohort::received<cohort::outcome>> end;
            group.async_next(end.into());
            run_out(io);
            CHECK(end.take()->restarted);
        }
        CHECK(group.waiting() == 3);
        CHECK(group.alive() == 0);
        CHECK(group.outcomes().empty());
        completed<cohort::report> stopped;
        group.async_stop(stopped.into());
        run_out(io);
        const auto report = stopped.take();
        CHECK(group.waiting() == 0);
        REQUIRE(report.outcomes.size() == 3);
        for (const auto& one : report.outcomes) {
            CHECK(one.cause == cause::stopped);
            CHECK(one.pid == 0);
            check_history(one, 2);
            CHECK(one.history[0].status.exit_code() == 1);
        }
        completed<bool> joined;
        group.async_join(joined.into());
        run_out(io);
        CHECK(joined.threw<cohort::group_stopped>());
    }
    const auto late = thrown_by<cohort::group_timed_out>(
        failing(9), cohort::options(how).time_limit(under_tsan ? 2s : 500ms));
    for (const auto& one : late.outcomes())
        CHECK(one.cause == cause::timed_out);
    completed<cohort::group> dropped;
    cohort::async_spawn(io, failing(9), how, dropped.into());
    run_out(io);
    (void)dropped.take();  // the guard waits for its end
}

TEST_CASE("restart: a later start that fails is tried again") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto program = directory.file("program");
    const auto make = [&](int index) {
        return index == 3 ? cohort::command(program)
                          : cohort::command("sh", "-c",
                                            "cp /bin/true " + program + ".$$; mv " + program +
                                                ".$$ " + program);
    };
    const auto report =
        ended(cohort::command_for(make),
              cohort::options(4).at_once(3).restart(restarts(1000).backoff(10ms, 10ms)));
    CHECK(report.success());
    for (const auto& attempt : report.outcomes.at(3).history)
        CHECK(attempt.cause == (attempt.restarted ? cause::not_started : cause::exited));
    const auto failed = thrown_by<cohort::process_exited_exception>(
        cohort::command_for([](int index) {
            return index == 3 ? cohort::command("cohort-no-such-program") : cohort::command("true");
        }),
        cohort::options(4).at_once(3).restart(2));
    CHECK(failed.error_index() == 3);
    check_history(failed.failed(), 3);
    CHECK(failed.failed().cause == cause::not_started);
}

TEST_CASE("restart: each attempt has its own time limit") {
    const leak_guard guard;
    const auto failed = thrown_by<cohort::process_exited_exception>(
        cohort::command("sleep", "1000"), cohort::options(1).worker_time_limit(100ms).restart(1));
    check_history(failed.failed(), 2);
    for (const auto& attempt : failed.failed().history)
        CHECK(attempt.cause == cause::timed_out);
}

TEST_CASE("restart: a storm of SIGKILL leaves nobody twice, and loses nobody") {
    have_server();
    const leak_guard guard;
    const int kills = how_many(1000, 100);
    asio::io_context io;
    ready up(io.get_executor());
    completed<cohort::group> started;
    cohort::async_spawn(io, waiting_command(),
                        cohort::options(8)
                            .restart(restarts(kills).jitter(1).backoff(1ms, 2ms))
                            .fd(up.child_end(), ready::number),
                        started.into());
    run_out(io);
    auto group = started.take();
    std::minstd_rand random(7);
    std::vector<int> seen(8);
    run_coroutine(io, up.wait(8));
    for (int i = 0; i < kills; ++i) {
        const int index = static_cast<int>(random() % 8);
        group.signal(index, SIGKILL);
        completed<cohort::received<cohort::outcome>> end;
        group.async_next(end.into());
        run_out(io);
        const auto one = end.take();
        CHECK(one->index == index);
        CHECK(one->attempt == seen[static_cast<std::size_t>(index)]++);
        CHECK(one->cause == cause::signaled);
        CHECK(one->restarted);
        run_coroutine(io, up.wait(1));
        while (group.alive() < 8)  // the worker may run before its start is noted here
            std::this_thread::yield();
    }
    const auto pids = group.pids();
    CHECK(std::set<pid_t>(pids.begin(), pids.end()).size() == 8);
    completed<cohort::report> stopped;
    group.async_stop(stopped.into());
    run_out(io);
    for (const auto& one : stopped.take().outcomes) {
        CHECK(one.cause == cause::stopped);
        CHECK(one.pid == pids[static_cast<std::size_t>(one.index)]);
    }
}

TEST_CASE("restart: cancelled, dropped or late at any moment, nothing is left") {
    have_server();
    const leak_guard guard;
    const int rounds = under_asan || under_tsan ? 15 : 60;
    for (int round = 0; round < rounds; ++round) {
        asio::io_context io;
        asio::cancellation_signal cancel;
        completed<cohort::report> ran;
        const auto method = all_methods[static_cast<std::size_t>(round) % std::size(all_methods)];
        auto policy = restarts(1'000'000);
        if (round % 2 == 0)
            policy.scope(cohort::restart_scope::all);
        asio::co_spawn(io,
                       cohort::run(cohort::function<third_time_lucky>(),
                                   by(method, 20).at_once(1 + round % 4).restart(policy)),
                       ran.into(cancel));
        const auto until = std::chrono::steady_clock::now() + round * 500us;
        while (std::chrono::steady_clock::now() < until)
            io.poll();
        cancel.emit(asio::cancellation_type::terminal);
        run_out(io);
        CHECK(ran.calls() == 1);
    }
}

TEST_CASE("restart: what can't be is refused") {
    CHECK_THROWS_AS(restarts(-1), std::invalid_argument);
    CHECK_THROWS_AS(restarts(1).within(-1s), std::invalid_argument);
    CHECK_THROWS_AS(restarts(1).backoff(2s, 1s), std::invalid_argument);
    CHECK_THROWS_AS(restarts(1).backoff(-1s, 1s), std::invalid_argument);
    CHECK_THROWS_AS(restarts(1).jitter(1.1), std::invalid_argument);
    CHECK_THROWS_AS(restarts(1).jitter(-0.1), std::invalid_argument);
    CHECK_THROWS_AS(restarts(1).jitter(std::numeric_limits<double>::quiet_NaN()),
                    std::invalid_argument);
    const cohort::barrier all(2);
    CHECK_THROWS_AS(
        run_coroutine(run_whole(
            cohort::function<[](int, const cohort::barrier& meet) { meet.arrive_and_wait(); }>(all),
            cohort::options(2).restart(1))),
        std::invalid_argument);
    CHECK(cohort::options(2).restart(1) == cohort::options(2).restart(1));
    CHECK_FALSE(cohort::options(2).restart(1) == cohort::options(2).restart(2));
}

}  // namespace restart_test
