// SPDX-License-Identifier: BSL-1.0
// Groups of groups: a worker that has a group of its own is stopped, killed, or loses its parent.
#include "group_test.hpp"
#include "guard.hpp"
#include "held_process.hpp"
#include "pipes.hpp"
#include "scratch.hpp"
#include "watchdog.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <stop_token>
#include <string>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace nested_test {

using namespace std::chrono_literals;
using cohort::cause;
using cohort::test::ready;
using cohort::test::run_coroutine;
using cohort::test::say_ready;
using steady_clock = std::chrono::steady_clock;
using cohort::test::sleep_until_killed;

namespace {

enum class manner { obedient, stubborn };

void leaf(int index, const std::string& directory, manner how) {
    std::ofstream(directory + "/leaf" + std::to_string(index)) << ::getpid() << std::endl;
    if (how == manner::stubborn)
        std::signal(SIGTERM, SIG_IGN);
    say_ready();
    sleep_until_killed();
}

/// Starts two leaves and, when they are there, kills itself or says so and waits for them.
asio::awaitable<void> hold_leaves(std::string directory, manner how, int own_signal) {
    ready leaves(co_await asio::this_coro::executor);
    auto group = co_await cohort::spawn(cohort::function<leaf>(directory, how),
                                        cohort::options(2).fd(leaves.child_end(), ready::number));
    co_await leaves.wait(2);
    if (own_signal != 0)
        ::kill(::getpid(), own_signal);
    else
        say_ready();
    co_await group.join();
}

void middle(int, const std::string& directory, manner how, int own_signal) {
    run_coroutine(hold_leaves(directory, how, own_signal));
}

/// Starts two leaves and says so. At a stop it stops them itself, by its stop token, and returns.
asio::awaitable<void> stop_leaves(std::string directory, manner how) {
    ready leaves(co_await asio::this_coro::executor);
    auto group = co_await cohort::spawn(cohort::function<leaf>(directory, how),
                                        cohort::options(2).fd(leaves.child_end(), ready::number));
    const std::stop_callback stop(cohort::this_worker::stop_token(),
                                  [&group] { group.request_stop(); });
    co_await leaves.wait(2);
    say_ready();
    co_await group.wait();
}

void careful_middle(int, const std::string& directory) {
    run_coroutine(stop_leaves(directory, manner::obedient));
}

/// Waits for the end of the process whose pid is in the file.
bool vanishes(const std::string& file) {
    return cohort::test::ends_or_has_ended(std::stoi(cohort::test::read_file(file)));
}

void check_leaves_vanish(const cohort::test::scratch_directory& scratch) {
    CHECK(vanishes(scratch.file("leaf0")));
    CHECK(vanishes(scratch.file("leaf1")));
}

asio::awaitable<void> middle_dies_by(int signo, manner how) {
    const cohort::test::scratch_directory scratch;
    auto group = co_await cohort::spawn(cohort::function<middle>(scratch.path(), how, signo),
                                        cohort::options(1).grace_period(4s));
    const auto told = co_await group.wait();
    CHECK(told.outcomes[0].cause == cause::signaled);
    CHECK(told.outcomes[0].status.signal() == signo);
    check_leaves_vanish(scratch);
}

}  // namespace

GROUP_TEST("nested: when the middle of a tree gets SIGTERM, all its leaves end (torch T9)") {
    co_await middle_dies_by(SIGTERM, manner::obedient);
}

GROUP_TEST("nested: when the middle of a tree gets SIGKILL, all its leaves end (torch T9)") {
    co_await middle_dies_by(SIGKILL, manner::stubborn);
}

GROUP_TEST("nested: when the middle of a tree dies of an unexpected signal, its leaves end") {
    co_await middle_dies_by(SIGUSR1, manner::stubborn);
}

GROUP_TEST(
    "nested: a stopped worker stops its groups in half of its grace, then obeys the signal") {
    const auto grace = cohort::test::generous_bound() / 22;  // 4 s; more under a sanitizer
    const cohort::test::scratch_directory scratch;
    ready middles(executor);
    auto group = co_await cohort::spawn(
        cohort::function<middle>(scratch.path(), manner::stubborn, 0),
        cohort::options(1).grace_period(grace).fd(middles.child_end(), ready::number));
    co_await middles.wait();
    const auto begin = steady_clock::now();
    const auto told = co_await group.stop();
    const auto needed = steady_clock::now() - begin;
    CHECK(told.outcomes[0].cause == cause::stopped);
    CHECK(told.outcomes[0].status.signal() == SIGTERM);
    CHECK(needed >= grace / 2);
    CHECK(needed < grace);
    check_leaves_vanish(scratch);
}

GROUP_TEST("nested: a worker whose groups obey is stopped at once") {
    const cohort::test::scratch_directory scratch;
    ready middles(executor);
    auto group = co_await cohort::spawn(
        cohort::function<middle>(scratch.path(), manner::obedient, 0),
        cohort::options(1).grace_period(1h).fd(middles.child_end(), ready::number));
    co_await middles.wait();
    const auto told = co_await group.stop();
    CHECK(told.outcomes[0].cause == cause::stopped);
    CHECK(told.outcomes[0].status.signal() == SIGTERM);
    check_leaves_vanish(scratch);
}

GROUP_TEST("nested: a worker that asked for its stop token ends its groups and itself") {
    const cohort::test::scratch_directory scratch;
    ready middles(executor);
    auto group = co_await cohort::spawn(
        cohort::function<careful_middle>(scratch.path()),
        cohort::options(1).grace_period(1h).fd(middles.child_end(), ready::number));
    co_await middles.wait();
    const auto told = co_await group.stop();
    CHECK(told.success());
    CHECK(told.outcomes[0].cause == cause::returned);
    check_leaves_vanish(scratch);
}

GROUP_TEST("nested: a worker's failure ends the groups of its siblings") {
    const cohort::test::scratch_directory scratch;
    ready middles(executor);
    auto group = co_await cohort::spawn(
        cohort::function<middle>(scratch.path(), manner::obedient, 0),
        cohort::options(2).grace_period(1h).fd(middles.child_end(), ready::number));
    co_await middles.wait(2);
    group.signal(0, SIGKILL);
    const auto told = co_await group.wait();
    CHECK(told.outcomes[0].first_failure);
    CHECK(told.outcomes[1].cause == cause::stopped);
    CHECK(told.outcomes[1].status.signal() == SIGTERM);
}

#ifdef COHORT_PROGRAM_ORPHAN_HOST

GROUP_TEST(
    "nested: when a host dies of SIGKILL, its workers and theirs die, whatever they ignore") {
    ready processes(executor);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, processes.child_end(), ready::number);
    std::string program = COHORT_PROGRAM_ORPHAN_HOST;
    char* argv[] = {program.data(), nullptr};
    pid_t host = 0;
    const int error = ::posix_spawn(&host, argv[0], &actions, nullptr, argv, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    REQUIRE(error == 0);
    processes.close_child_end();
    co_await processes.wait(6);
    ::kill(host, SIGKILL);
    int status = 0;
    ::waitpid(host, &status, 0);
    CHECK(WTERMSIG(status) == SIGKILL);
    try {
        co_await processes.wait();
        FAIL("somebody is ready who is not there");
    } catch (const std::runtime_error&) {
        // The pipe's end: nobody holds it any more.
    }
}

#endif

}  // namespace nested_test
