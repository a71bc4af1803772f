// SPDX-License-Identifier: BSL-1.0
// The guardian acts after the number of a worker's process group has become free, or another's. On
// both tiers, because only one of them signals a group by its number.
#include "guardian.hpp"
#include "guardian_support.hpp"
#include "held_process.hpp"
#include "live_support.hpp"
#include "procfs.hpp"
#include "reporter.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>

#include <linux/sched.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace guardian_number_test {

namespace {

using namespace cohort::test;

/// Waits until a dead worker's number is free, and makes a child that has it: whoever takes in
/// orphans reaps the worker some time.
/// @return as of fork(2)
pid_t fork_with_number(pid_t number) {
    clone_args args{};
    args.exit_signal = SIGCHLD;
    args.set_tid = reinterpret_cast<std::uintptr_t>(&number);
    args.set_tid_size = 1;
    long made = -1;
    const auto until = std::chrono::steady_clock::now() + generous_bound() / 2;
    do {
        made = ::syscall(SYS_clone3, &args, sizeof args);
    } while (made < 0 && errno == EEXIST && std::chrono::steady_clock::now() < until);
    return static_cast<pid_t>(made);
}

[[noreturn]] void wait_for_the_end() {
    for (;;)
        ::pause();
}

/// Makes a process group with this number. @return a process in it; 0: the number can't be had
pid_t lead_group_of(pid_t number) {
    const pid_t leader = fork_with_number(number);
    if (leader == 0) {
        ::setpgid(0, 0);
        wait_for_the_end();
    }
    if (leader > 0)
        ::setpgid(leader, leader);
    return leader > 0 ? leader : 0;
}

/// Makes a session and a process group with this number, whose leader has ended.
/// @return a process in it; 0: the number can't be had
pid_t leave_group_of(pid_t number) {
    pipe_pair told;
    const pid_t leader = fork_with_number(number);
    if (leader == 0) {
        ::setsid();
        const pid_t left = ::fork();
        if (left == 0)
            wait_for_the_end();
        ::_exit(::write(told.writes(), &left, sizeof left) == sizeof left ? 0 : 1);
    }
    told.close_writes();
    pid_t left = 0;
    if (leader < 0 || ::read(told.reads(), &left, sizeof left) != sizeof left)
        return 0;
    ::waitpid(leader, nullptr, 0);
    return left;
}

/// The only process that a host has started. What it has forked to try system calls may not yet be
/// reaped, and a reap has no event.
pid_t await_only_descendant(pid_t host) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    auto found = descendants_of(host, all_processes());
    while (found.size() != 1 && std::chrono::steady_clock::now() < until) {
        ::poll(nullptr, 0, 1);
        found = descendants_of(host, all_processes());
    }
    REQUIRE(found.size() == 1);
    return found[0].pid;
}

/// Gives the number of a dead worker to somebody else before the guardian acts.
/// @param make  makes the process group that has the number then
asio::awaitable<void> take_number(pid_t (*make)(pid_t number), std::string tier) {
    live_host host(co_await asio::this_coro::executor);
    co_await host.start(
        cohort::command(COHORT_PROGRAM_GUARDED_HOST, "plain").env("COHORT_FORCE", tier));
    co_await host.held.wait();
    const held_process guardian(await_guardian(host.pid()));
    const pid_t worker = await_only_descendant(host.pid());
    guardian.signal(SIGSTOP);
    co_await host.kill();
    co_await host.until_all_are_gone();
    const pid_t pid = make(worker);
    if (pid == 0) {
        skip("clone3 with set_tid: " + std::generic_category().message(errno));
        guardian.signal(SIGCONT);
        co_return;
    }
    const held_process other(pid);
    guardian.signal(SIGCONT);
    CHECK(guardian.ends());
    CHECK(other.lives());
    other.signal(SIGKILL);
    CHECK(other.ends());
    ::waitpid(pid, nullptr, 0);
}

/// The guardian can't act before whoever takes in orphans has reaped the worker.
asio::awaitable<void> act_late(std::string tier) {
    live_host host(co_await asio::this_coro::executor);
    co_await host.start(
        cohort::command(COHORT_PROGRAM_GUARDED_HOST, "forked").env("COHORT_FORCE", tier));
    co_await host.held.wait();
    const held_process guardian(await_guardian(host.pid()));
    const auto child = child_of_worker(host.pid());
    REQUIRE(child.pid != 0);
    const held_process left(child.pid);
    guardian.signal(SIGSTOP);
    co_await host.kill();
    const auto until = std::chrono::steady_clock::now() + generous_bound() / 2;
    while (::kill(child.parent, 0) == 0 && std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
    CHECK(left.lives());
    guardian.signal(SIGCONT);
    CHECK(left.ends());
    left.signal(SIGKILL);  // if it has not ended, nothing else would end it
    co_await host.until_all_are_gone();
    CHECK(guardian.ends());
}

}  // namespace

TEST_CASE("guardian number: the guardian ends the child of a worker that was reaped before it "
          "could act") {
    if (!has_guardian())
        return;
    for (const auto& tier : guardian_tiers()) {
        CAPTURE(tier);
        const leak_guard guard;
        run_coroutine(act_late(tier));
    }
}

TEST_CASE("guardian number: a process that has a dead worker's number is not signalled") {
    if (!has_guardian())
        return;
    for (const auto& tier : guardian_tiers()) {
        CAPTURE(tier);
        const leak_guard guard;
        run_coroutine(take_number(lead_group_of, tier));
    }
}

TEST_CASE("guardian number: a group of another session that has a dead worker's number is not "
          "signalled") {
    if (!has_guardian())
        return;
    for (const auto& tier : guardian_tiers()) {
        CAPTURE(tier);
        const leak_guard guard;
        run_coroutine(take_number(leave_group_of, tier));
    }
}

}  // namespace guardian_number_test
