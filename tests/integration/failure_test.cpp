// SPDX-License-Identifier: BSL-1.0
// Which failure is thrown, what becomes of the others, and how each ended.
#include "group_test.hpp"
#include "guard.hpp"
#include "pipes.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace failure_test {

using namespace std::chrono_literals;
using cohort::cause;
using cohort::test::failure;
using cohort::test::ignore_stop;
using cohort::test::ready;
using cohort::test::say_ready;
using cohort::test::sleep_until_killed;
using cohort::test::wait_for_go;
using cohort::test::wait_for_stop;

namespace {

void tell_pid(int pipe) {
    const pid_t pid = ::getpid();
    if (::write(pipe, &pid, sizeof pid) != sizeof pid)
        throw std::runtime_error("tell_pid");
}

/// Reads a pid from the pipe and waits until that process has ended.
void wait_for_end_of_other(int pipe) {
    pid_t pid = 0;
    if (::read(pipe, &pid, sizeof pid) != sizeof pid)
        throw std::runtime_error("wait_for_end_of_other");
    pollfd polled{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)), POLLIN, 0};
    if (polled.fd >= 0)
        ::poll(&polled, 1, -1);
}

/// 2 raises; after its end 0 does; after that one's end 1 says so.
void raise_backwards(int index) {
    if (index == 2) {
        tell_pid(6);
        throw std::runtime_error("the first");
    }
    wait_for_end_of_other(index == 0 ? 5 : 7);
    if (index == 0) {
        tell_pid(8);
        throw std::logic_error("the second");
    }
    say_ready();
}

void raise_in_first_others_obey(int index) {
    if (index == 0)
        throw std::runtime_error("the cause of it all");
    sleep_until_killed();
}

void raise_when_stopped(int index) {
    if (index == 0) {
        wait_for_go();
        throw std::runtime_error("the cause of it all");
    }
    wait_for_stop();
    throw std::runtime_error("interrupted");
}

void exit_in_first_others_ignore_stop(int index) {
    if (index != 0)
        ignore_stop();
    wait_for_go();
    std::exit(5);
}

int fail_at_go(int index) {
    if (index == 2)
        std::exit(7);
    wait_for_go();
    if (index == 0)
        std::exit(6);
    return index;
}

/// Raises at once; the process stays and says so when it is about to exit.
[[noreturn]] void raise_and_linger() {
    struct lingering {
        ~lingering() {
            say_ready();
            sleep_until_killed();
        }
    };
    static const lingering at_exit;
    throw std::runtime_error("the first");
}

void raise_first_end_last(int index) {
    if (index == 1)
        raise_and_linger();
    wait_for_go();
    throw std::runtime_error("the second");
}

/// How long the group lived after its first failure.
auto time_after_failure(const cohort::process_exception& error) {
    auto last = error.outcomes()[0].ended;
    for (const auto& worker : error.outcomes())
        last = std::max(last, worker.ended);
    return last - error.outcomes()[error.error_index()].ended;
}

}  // namespace

GROUP_TEST("failure: the first failure in time is thrown, not the one with the lowest index") {
    const auto here = executor;
    asio::readable_pipe at_0(here), at_1(here);
    asio::writable_pipe to_0(here), to_1(here);
    ready all_over(here);
    asio::connect_pipe(at_0, to_0);
    asio::connect_pipe(at_1, to_1);
    auto group = co_await cohort::spawn(cohort::function<raise_backwards>(),
                                        cohort::options(3)
                                            .on_failure(cohort::on_failure::keep_going)
                                            .fd(all_over.child_end(), ready::number)
                                            .fd(at_0.native_handle(), 5)
                                            .fd(to_0.native_handle(), 6)
                                            .fd(at_1.native_handle(), 7)
                                            .fd(to_1.native_handle(), 8));
    co_await all_over.wait();
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(error.error_index() == 2);
    CHECK(error.error().message == "the first");
    CHECK(error.outcomes()[2].first_failure);
    CHECK_FALSE(error.outcomes()[0].first_failure);
    CHECK(error.outcomes()[0].cause == cause::raised);
    CHECK(error.outcomes()[0].error->message == "the second");
    CHECK(error.outcomes()[1].cause == cause::returned);
}

GROUP_TEST("failure: the first exception wins even if its process exits last, by the stop signal") {
    ready waits(executor);
    auto group = co_await cohort::spawn(cohort::function<raise_first_end_last>(),
                                        cohort::options(2).fd(waits.child_end(), ready::number));
    co_await waits.wait(2);
    group.signal(0, SIGUSR1);
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(error.error_index() == 1);
    CHECK(error.error().message == "the first");
    CHECK(error.outcomes()[1].cause == cause::raised);
    CHECK(error.outcomes()[1].status.signal() == SIGTERM);
}

GROUP_TEST("failure: an exit code counts from the time it is seen, however late the join") {
    ready waits(executor);
    auto group = co_await cohort::spawn(
        cohort::function<fail_at_go>(),
        cohort::options(3).notice_period(1h).fd(waits.child_end(), ready::number));
    co_await waits.wait(2);
    const auto first = co_await group.next();
    CHECK(first->index == 2);
    group.signal(SIGUSR1);
    while (group.alive() != 0)
        co_await group.next();
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(error.error_index() == 2);
    CHECK(error.exit_code() == 7);
    const auto& ends = error.outcomes();
    CHECK(ends[0].cause == cause::exited);  // in the notice period: a failure of its own
    CHECK(ends[0].status.exit_code() == 6);
    CHECK_FALSE(ends[0].first_failure);
    CHECK(ends[1].cause == cause::returned);
    CHECK(ends[1].result<int>() == 1);
}

GROUP_TEST("failure: the group reacts at once even if nothing joins it") {
    auto group = co_await cohort::spawn(cohort::function<raise_in_first_others_obey>(), 8);
    for (int ended = 0; ended < 8; ++ended) {
        const auto one = co_await group.next();
        CHECK(one);
    }
    CHECK(group.alive() == 0);
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(error.error().message == "the cause of it all");
    for (int i = 1; i < 8; ++i) {
        CHECK(error.outcomes()[i].cause == cause::stopped);
        CHECK(error.outcomes()[i].status.signal() == SIGTERM);
        CHECK_FALSE(error.outcomes()[i].first_failure);
    }
}

GROUP_TEST("failure: a stopped worker that raises on the stop signal keeps its error") {
    ready waits(executor);
    auto group = co_await cohort::spawn(cohort::function<raise_when_stopped>(),
                                        cohort::options(2).fd(waits.child_end(), ready::number));
    co_await waits.wait(2);
    group.signal(0, SIGUSR1);
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(error.error_index() == 0);
    const auto& victim = error.outcomes()[1];
    CHECK(victim.cause == cause::stopped);
    CHECK(victim.status.exit_code() == 1);
    CHECK(victim.error->message == "interrupted");
}

GROUP_TEST("failure: every join throws the same failure anew") {
    auto group = co_await cohort::spawn(cohort::function<raise_in_first_others_obey>(), 3);
    const auto first = co_await failure<cohort::process_raised_exception>(group);
    const auto second = co_await failure<cohort::process_raised_exception>(group);
    CHECK(std::string(first.what()) == second.what());
    CHECK(second.error_index() == 0);
    CHECK(first.error() == second.error());
    std::exception_ptr thrown[2];
    for (auto& one : thrown)
        try {
            co_await group.join(0s);
        } catch (...) {
            one = std::current_exception();
        }
    CHECK((thrown[0] && thrown[1] && thrown[0] != thrown[1]));
}

GROUP_TEST("failure: keep_going lets the others finish and throws at the end") {
    ready waits(executor);
    auto group = co_await cohort::spawn(cohort::function<fail_at_go>(),
                                        cohort::options(4)
                                            .on_failure(cohort::on_failure::keep_going)
                                            .fd(waits.child_end(), ready::number));
    co_await waits.wait(3);
    co_await group.next();
    const bool over = co_await group.join(0s);
    CHECK_FALSE(over);
    CHECK(group.alive() == 3);
    group.signal(SIGUSR1);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(error.error_index() == 2);
    CHECK(error.outcomes()[0].cause == cause::exited);
    CHECK(error.outcomes()[1].success());
    CHECK(error.outcomes()[3].result<int>() == 3);
}

GROUP_TEST("failure: a worker that ignores the stop signal gets SIGKILL after the grace period") {
    ready waits(executor);
    auto group = co_await cohort::spawn(
        cohort::function<exit_in_first_others_ignore_stop>(),
        cohort::options(3).grace_period(0.5s).fd(waits.child_end(), ready::number));
    co_await waits.wait(3);
    group.signal(0, SIGUSR1);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(error.exit_code() == 5);
    CHECK(time_after_failure(error) >= 500ms);
    for (int i : {1, 2}) {
        CHECK(error.outcomes()[i].cause == cause::killed);
        CHECK(error.outcomes()[i].status.signal() == SIGKILL);
    }
}

GROUP_TEST("failure: with a grace period of 0 SIGKILL follows the stop signal at once") {
    ready waits(executor);
    auto group = co_await cohort::spawn(
        cohort::function<exit_in_first_others_ignore_stop>(),
        cohort::options(2).grace_period(0s).fd(waits.child_end(), ready::number));
    co_await waits.wait(2);
    group.signal(0, SIGUSR1);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(error.exit_code() == 5);
    CHECK(error.outcomes()[1].cause == cause::killed);
    CHECK(error.outcomes()[1].status.signal() == SIGKILL);
}

}  // namespace failure_test
