// SPDX-License-Identifier: BSL-1.0
// Signals to a group, deaths by signals, and the stop token.
#include "group_test.hpp"
#include "guard.hpp"
#include "methods.hpp"
#include "pipes.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

namespace signals_test {

using namespace std::chrono_literals;
using cohort::cause;
using cohort::test::all_methods;
using cohort::test::by;
using cohort::test::failure;
using cohort::test::have_server;
using cohort::test::leak_guard;
using cohort::test::ready;
using cohort::test::run_coroutine;
using cohort::test::say_ready;
using cohort::test::sleep_until_killed;
using cohort::test::under_tsan;
using cohort::test::wait_on_token;

namespace {

[[noreturn]] void say_ready_and_sleep() {
    say_ready();
    sleep_until_killed();
}

void sleeper(int) { say_ready_and_sleep(); }

/// The worker and its child: each says that it is ready, and once more at each SIGUSR1.
void two_that_tell(int) {
    std::signal(SIGUSR1, [](int) { say_ready(); });
    (void)!::fork();
    say_ready_and_sleep();
}

void ignore_signals(int) {
    std::signal(SIGUSR1, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
    say_ready_and_sleep();
}

void kill_itself(int, int signo) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::signal(signo, SIG_DFL);
    ::kill(::getpid(), signo);
    say_ready_and_sleep();
}

bool return_on_token(int) {
    const auto token = cohort::this_worker::stop_token();
    const bool before = token.stop_requested();
    say_ready();
    wait_on_token(token);
    return !before && token.stop_requested() && token == cohort::this_worker::stop_token();
}

/// A handler of the program's own stands against the token's.
void own_handler(int) {
    std::signal(SIGTERM, [](int) { ::_exit(21); });
    const auto token = cohort::this_worker::stop_token();
    say_ready_and_sleep();
}

void exit_on_signal_from_outside(int) {
    const auto token = cohort::this_worker::stop_token();
    say_ready();
    wait_on_token(token);
    throw std::runtime_error("told to end, not by the group");
}

}  // namespace

GROUP_TEST("signals: signal() reaches each worker and its children") {
    ready told(executor);
    auto group = co_await cohort::spawn(cohort::function<two_that_tell>(),
                                        cohort::options(2).fd(told.child_end(), ready::number));
    co_await told.wait(4);
    group.signal(SIGUSR1);
    co_await told.wait(4);
    CHECK(group.alive() == 2);
    const auto stopped = co_await group.stop();
    CHECK(stopped.outcomes[1].status.signal() == SIGTERM);
}

TEST_CASE("signals: signal(index, signo) reaches that worker and its children, and no other") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        if (under_tsan && method == cohort::start_method::fork)
            continue;  // TSan calls no signal handlers in a copy of a program with threads
        run_coroutine([](cohort::start_method method) -> asio::awaitable<void> {
            ready told(co_await asio::this_coro::executor);
            auto group = co_await cohort::spawn(cohort::function<two_that_tell>(),
                                                by(method, 3).fd(told.child_end(), ready::number));
            co_await told.wait(6);
            for (const int index : {0, 2}) {
                group.signal(index, SIGUSR1);
                co_await told.wait(2);
            }
            CHECK(group.alive() == 3);
            group.signal(1, SIGUSR2);
            const auto error = co_await failure<cohort::process_exited_exception>(group);
            CHECK(error.error_index() == 1);
            CHECK(error.signal_name() == "SIGUSR2");
            CHECK(error.outcomes()[0].cause == cause::stopped);
            CHECK(error.outcomes()[2].cause == cause::stopped);
            told.close_child_end();
            CHECK_THROWS_AS(co_await told.wait(), std::runtime_error);  // nobody else has told
        }(method));
    }
}

TEST_CASE("signals: a signal to a worker that has ended changes nothing") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods)
        run_coroutine([](cohort::start_method method) -> asio::awaitable<void> {
            ready up(co_await asio::this_coro::executor);
            auto how = by(method, 2).on_failure(cohort::on_failure::keep_going);
            auto group = co_await cohort::spawn(cohort::function<sleeper>(),
                                                how.fd(up.child_end(), ready::number));
            co_await up.wait(2);
            group.signal(1, SIGKILL);
            const auto first = co_await group.next();
            CHECK(first->index == 1);
            group.signal(1, SIGTERM);
            CHECK(group.alive() == 1);
            group.signal(0, SIGUSR1);
            const auto second = co_await group.next();
            CHECK(second->index == 0);
            const auto report = co_await group.wait();
            CHECK(report.outcomes[0].status.signal() == SIGUSR1);
            CHECK(report.outcomes[1].status.signal() == SIGKILL);
            group.signal(0, SIGTERM);
            CHECK(group.outcomes()[0].status.signal() == SIGUSR1);
        }(method));
}

GROUP_TEST("signals: an index without a worker is an invalid_argument, also in an ended group") {
    auto group = co_await cohort::spawn(cohort::command("sleep", 1000), 2);
    auto nobody = co_await cohort::spawn(cohort::command("sleep", 1000), 0);
    CHECK_THROWS_AS(nobody.signal(0, SIGTERM), std::invalid_argument);
    for (const bool has_ended : {false, true}) {
        for (const int index : {-1, 2, 1 << 20})
            CHECK_THROWS_WITH_AS(
                group.signal(index, SIGTERM),
                doctest::Contains(fmt::format("no worker {}, the group has 2", index).c_str()),
                std::invalid_argument);
        for (const int signo : {0, -1, 65})
            CHECK_THROWS_AS(group.signal(1, signo), std::invalid_argument);
        if (has_ended)
            break;
        CHECK(group.alive() == 2);
        co_await group.stop();
    }
}

GROUP_TEST("signals: an ignored signal changes nothing, and neither does one to an ended group") {
    ready told(executor);
    auto group = co_await cohort::spawn(cohort::function<ignore_signals>(),
                                        cohort::options(1).fd(told.child_end(), ready::number));
    co_await told.wait();
    group.signal(SIGUSR1);
    group.signal(SIGHUP);
    const bool over = co_await group.join(1ms);
    CHECK_FALSE(over);
    const auto stopped = co_await group.stop();
    CHECK(stopped.outcomes[0].status.signal() == SIGTERM);
    group.signal(SIGKILL);
    const auto same = co_await group.wait();
    CHECK(same.outcomes[0].status.signal() == SIGTERM);
}

GROUP_TEST("signals: a worker that dies of a signal has failed, of SIGKILL too") {
    for (const int signo : {SIGKILL, SIGTERM, SIGUSR1}) {
        ready starts(executor);
        auto group = co_await cohort::spawn(cohort::function<sleeper>(),
                                            cohort::options(2)
                                                .on_failure(cohort::on_failure::keep_going)
                                                .fd(starts.child_end(), ready::number));
        co_await starts.wait(2);
        group.signal(signo);
        const auto error = co_await failure<cohort::process_exited_exception>(group);
        CHECK(error.exit_code() == -signo);
        for (const auto& worker : error.outcomes()) {
            CHECK(worker.cause == cause::signaled);
            CHECK(worker.status.signal() == signo);
        }
    }
}

GROUP_TEST("signals: an invalid signal number is an invalid_argument") {
    auto group = co_await cohort::spawn(cohort::command("sleep", 1000), 1);
    for (const int signo : {0, -1, 65, 1 << 20})
        CHECK_THROWS_WITH_AS(group.signal(signo), doctest::Contains(std::to_string(signo).c_str()),
                             std::invalid_argument);
    CHECK(group.alive() == 1);
    group.signal(64);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(error.exit_code() == -64);
    CHECK(error.signal_name() == "SIGRTMAX");
}

GROUP_TEST("signals: a death by a signal without a name is reported by its number") {
    auto group = co_await cohort::spawn(cohort::command("sleep", 1000), 1);
    group.signal(0, 37);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(std::string(error.what()) == "process 0 terminated with signal <Unknown signal 37>");
    CHECK(error.signal_name() == "<Unknown signal 37>");
    CHECK(error.exit_code() == -37);
}

GROUP_TEST("signals: a death by SIGSEGV, SIGABRT or SIGKILL is reported by name") {
    const std::pair<int, const char*> deaths[] = {
        {SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGKILL, "SIGKILL"}};
    for (const auto& [signo, name] : deaths) {
        auto group = co_await cohort::spawn(cohort::function<kill_itself>(signo), 1);
        const auto error = co_await failure<cohort::process_exited_exception>(group);
        CHECK(error.signal_name() == name);
        CHECK_FALSE(error.status().core_dumped());
    }
}

GROUP_TEST("signals: a worker that is interrupted while its parent lives has failed (torch T15)") {
    auto itself = co_await cohort::spawn(cohort::function<kill_itself>(SIGINT), 1);
    const auto error = co_await failure<cohort::process_exited_exception>(itself);
    CHECK(error.signal_name() == "SIGINT");

    auto group = co_await cohort::spawn(cohort::command("sleep", 1000), 2);
    group.signal(1, SIGINT);
    const auto same = co_await failure<cohort::process_exited_exception>(group);
    CHECK(same.error_index() == 1);
    CHECK(same.signal_name() == "SIGINT");
}

GROUP_TEST("signals: it fires on the stop signal, and the worker ends within the grace period") {
    ready waits(executor);
    auto group = co_await cohort::spawn(
        cohort::function<return_on_token>(),
        cohort::options(4).grace_period(1h).fd(waits.child_end(), ready::number));
    co_await waits.wait(4);
    const auto told = co_await group.stop();
    CHECK(told.success());
    for (const auto& worker : told.outcomes) {
        CHECK(worker.cause == cause::returned);
        CHECK(worker.result<bool>());
    }
}

GROUP_TEST("signals: the stop signal from outside fires the stop token too, and the worker's end "
           "is a failure") {
    ready waits(executor);
    auto group = co_await cohort::spawn(cohort::function<exit_on_signal_from_outside>(),
                                        cohort::options(1).fd(waits.child_end(), ready::number));
    co_await waits.wait();
    ::kill(group.pids()[0], SIGTERM);
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(error.error().message == "told to end, not by the group");
    CHECK(error.outcomes()[0].cause == cause::raised);
}

GROUP_TEST("signals: a handler of the program's own stays") {
    ready starts(executor);
    auto group = co_await cohort::spawn(cohort::function<own_handler>(),
                                        cohort::options(1).fd(starts.child_end(), ready::number));
    co_await starts.wait();
    const auto told = co_await group.stop();
    CHECK(told.outcomes[0].status.exit_code() == 21);
    CHECK(told.outcomes[0].cause == cause::stopped);
}

}  // namespace signals_test
