// SPDX-License-Identifier: BSL-1.0
// The stop ladder as it is asked for, and what join, wait and run say about it.
#include "group_test.hpp"
#include "guard.hpp"
#include "pipes.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace stop_test {

using namespace std::chrono_literals;
using cohort::cause;
using cohort::test::leak_guard;
using cohort::test::ready;
using cohort::test::run_coroutine;
using cohort::test::say_ready;
using steady_clock = std::chrono::steady_clock;
using cohort::test::failure;
using cohort::test::ignore_stop;
using cohort::test::sleep_until_killed;
using cohort::test::wait_for_go;
using cohort::test::wait_for_stop;

namespace {

void return_at_once(int) {}

void sleeper(int) {
    say_ready();
    sleep_until_killed();
}

void held(int) {
    ::raise(SIGSTOP);
    sleep_until_killed();
}

void stubborn(int) { ignore_stop(); }

/// Says that it is ready, and once more when the stop signal has come; ends when SIGUSR1 comes.
void end_at_go(int) {
    const std::stop_callback told(cohort::this_worker::stop_token(), [] { say_ready(); });
    wait_for_go(SIGUSR1);
}

int return_when_stopped(int index) {
    wait_for_stop();
    return index;
}

void exit_in_first(int index) {
    if (index == 0)
        std::exit(4);
    sleep_until_killed();
}

}  // namespace

GROUP_TEST("stop: every worker ends by the stop signal, and its outcome says so") {
    auto group = co_await cohort::spawn(cohort::function<exit_in_first>(), 0);
    const auto nobody = co_await group.stop();
    CHECK(nobody.outcomes.empty());

    auto sleepers = co_await cohort::spawn(cohort::command("sleep", 1000), 3);
    const auto stopped = co_await sleepers.stop();
    CHECK(stopped.outcomes.size() == 3);
    CHECK_FALSE(stopped.success());
    for (const auto& worker : stopped.outcomes) {
        CHECK(worker.cause == cause::stopped);
        CHECK(worker.status.signal() == SIGTERM);
    }
}

TEST_CASE("stop: the stop signal can be chosen") {
    const leak_guard guard;
    for (const int signo : {SIGINT, SIGUSR1})
        run_coroutine([](int signo) -> asio::awaitable<void> {
            ready starts(co_await asio::this_coro::executor);
            auto group = co_await cohort::spawn(
                cohort::function<sleeper>(),
                cohort::options(2).stop_signal(signo).fd(starts.child_end(), ready::number));
            co_await starts.wait(2);
            const auto stopped = co_await group.stop();
            for (const auto& worker : stopped.outcomes) {
                CHECK(worker.cause == cause::stopped);
                CHECK(worker.status.signal() == signo);
            }
            const auto error = co_await failure<cohort::group_stopped>(group);
            CHECK(error.outcomes().size() == 2);
        }(signo));
}

GROUP_TEST("stop: another stop signal fires the worker's token") {
    ready waits(executor);
    auto group = co_await cohort::spawn(
        cohort::function<return_when_stopped>(),
        cohort::options(2).stop_signal(SIGUSR2).fd(waits.child_end(), ready::number));
    co_await waits.wait(2);
    const auto stopped = co_await group.stop();
    CHECK(stopped.success());
    CHECK(stopped.outcomes[1].result<int>() == 1);
}

GROUP_TEST("stop: a process held by SIGSTOP obeys because SIGCONT follows the stop signal") {
    auto group =
        co_await cohort::spawn(cohort::function<held>(), cohort::options(1).grace_period(1h));
    siginfo_t info{};
    ::waitid(P_PID, group.pids()[0], &info, WSTOPPED | WNOWAIT);
    CHECK(info.si_code == CLD_STOPPED);
    const auto stopped = co_await group.stop();
    CHECK(stopped.outcomes[0].cause == cause::stopped);
    CHECK(stopped.outcomes[0].status.signal() == SIGTERM);
}

GROUP_TEST("stop: join on a stopped group without a failure throws group_stopped") {
    ready waits(executor);
    auto group = co_await cohort::spawn(cohort::function<return_when_stopped>(),
                                        cohort::options(2).fd(waits.child_end(), ready::number));
    co_await waits.wait(2);
    group.request_stop();
    for (int i = 0; i < 2; ++i) {
        const auto error = co_await failure<cohort::group_stopped>(group);
        CHECK(error.error_index() == -1);
        CHECK(error.error_pid() == 0);
        CHECK(error.outcomes()[0].cause == cause::returned);
    }
}

GROUP_TEST("stop: a group that had ended before stays what it was") {
    auto well = co_await cohort::spawn(cohort::function<return_at_once>(), 2);
    const bool before = co_await well.join();
    const auto told = co_await well.stop();
    well.request_stop();
    const bool after = co_await well.join();
    CHECK(before);
    CHECK(told.success());
    CHECK(after);

    auto failed = co_await cohort::spawn(cohort::function<exit_in_first>(), 2);
    co_await failed.wait();
    co_await failed.stop();
    const auto error = co_await failure<cohort::process_exited_exception>(failed);
    CHECK(error.exit_code() == 4);
}

GROUP_TEST("stop: a failure before the stop is thrown, not group_stopped") {
    auto group =
        co_await cohort::spawn(cohort::function<exit_in_first>(),
                               cohort::options(2).on_failure(cohort::on_failure::keep_going));
    co_await group.next();
    const auto stopped = co_await group.stop();
    CHECK(stopped.outcomes[0].first_failure);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(error.error_index() == 0);
    CHECK(error.outcomes()[1].cause == cause::stopped);
}

GROUP_TEST("stop: a stop in the notice period does not wait for its end") {
    auto group = co_await cohort::spawn(cohort::function<exit_in_first>(),
                                        cohort::options(2).notice_period(1h));
    co_await group.next();
    const bool over = co_await group.join(0s);
    CHECK_FALSE(over);
    const auto stopped = co_await group.stop();
    CHECK(stopped.outcomes[1].cause == cause::stopped);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(error.exit_code() == 4);
}

GROUP_TEST("stop: a second stop changes nothing, and both get the same report") {
    using namespace asio::experimental::awaitable_operators;
    ready starts(executor);
    auto group = co_await cohort::spawn(
        cohort::function<stubborn>(),
        cohort::options(2).grace_period(0.5s).fd(starts.child_end(), ready::number));
    co_await starts.wait(2);
    const auto begin = steady_clock::now();
    const auto [one, other] = co_await (group.stop() && group.stop());
    CHECK(steady_clock::now() - begin >= 500ms);
    for (const auto* told : {&one, &other})
        for (const auto& worker : told->outcomes) {
            CHECK(worker.cause == cause::killed);
            CHECK(worker.status.signal() == SIGKILL);
        }
}

GROUP_TEST("stop: a victim that had written its error file keeps the error, also after SIGKILL") {
    ready starts(executor);
    auto group = co_await cohort::spawn(
        cohort::command("sh", "-c",
                        "trap '' TERM; echo half done >$COHORT_ERROR_FILE; echo >&9; "
                        "exec sleep 1000"),
        cohort::options(1).grace_period(1ms).fd(starts.child_end(), ready::number));
    co_await starts.wait();
    const auto stopped = co_await group.stop();
    CHECK(stopped.outcomes[0].cause == cause::killed);
    REQUIRE(stopped.outcomes[0].error.has_value());
    CHECK(stopped.outcomes[0].error->message.starts_with("half done"));
}

GROUP_TEST("stop: while the ladder runs, join with a timeout gives false and alive counts") {
    ready waits(executor);
    auto group = co_await cohort::spawn(
        cohort::function<end_at_go>(),
        cohort::options(2).grace_period(1h).fd(waits.child_end(), ready::number));
    co_await waits.wait(2);
    group.request_stop();
    co_await waits.wait(2);
    const bool over = co_await group.join(1ms);
    CHECK_FALSE(over);
    CHECK(group.alive() == 2);
    CHECK(group.outcomes().empty());
    group.signal(SIGUSR1);
    const auto told = co_await group.stop();
    CHECK(told.success());
    CHECK(group.alive() == 0);
}

GROUP_TEST(
    "stop: a join timeout of zero or less polls, a short one lasts, a huge one is no limit") {
    ready waits(executor);
    auto group = co_await cohort::spawn(cohort::function<end_at_go>(),
                                        cohort::options(1).fd(waits.child_end(), ready::number));
    co_await waits.wait();
    const bool zero = co_await group.join(0s);
    const bool negative = co_await group.join(-1h);
    CHECK_FALSE(zero);
    CHECK_FALSE(negative);
    const auto begin = steady_clock::now();
    const bool half = co_await group.join(0.5s);
    CHECK_FALSE(half);
    CHECK(steady_clock::now() - begin >= 500ms);
    CHECK(group.alive() == 1);
    group.signal(SIGUSR1);
    const bool huge = co_await group.join(std::chrono::hours::max());
    CHECK(huge);
    const bool ended = co_await group.join(-1s);
    CHECK(ended);
}

GROUP_TEST("stop: wait gives a failed group's outcomes as data") {
    auto group = co_await cohort::spawn(cohort::function<exit_in_first>(), 2);
    const auto told = co_await group.wait();
    CHECK_FALSE(told.success());
    CHECK(told.outcomes[0].status.exit_code() == 4);
    CHECK(told.outcomes[0].first_failure);
    CHECK(told.outcomes[1].cause == cause::stopped);
    CHECK(told.elapsed > 0s);
    CHECK(told.elapsed >= told.outcomes[1].ended - told.outcomes[1].started);
}

GROUP_TEST("stop: run throws the failure of a worker") {
    try {
        co_await cohort::run(cohort::function<exit_in_first>(), 2);
        FAIL("run did not throw");
    } catch (const cohort::process_exited_exception& error) {
        CHECK(error.exit_code() == 4);
        CHECK(error.outcomes()[1].cause == cause::stopped);
    }
    const auto none = co_await cohort::run(cohort::function<return_at_once>(), 0);
    CHECK(none.success());
    CHECK(none.outcomes.empty());
}

}  // namespace stop_test
