// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group_test.hpp"
#include "held_process.hpp"
#include "procfs.hpp"
#include "scratch.hpp"
#include "start_support.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <csignal>
#include <sys/types.h>
#include <unistd.h>

/// A GROUP_TEST for groups that are started in any way: a fork server runs before its guard looks.
#define METHODS_TEST(title) COHORT_METHODS_TEST(title, DOCTEST_ANONYMOUS(group_test_body_))
#define COHORT_METHODS_TEST(title, body)                                                           \
    static asio::awaitable<void> body(asio::any_io_executor executor);                             \
    TEST_CASE(title) {                                                                             \
        ::cohort::test::server();                                                                  \
        ::cohort::test::run_group_test(&body);                                                     \
    }                                                                                              \
    static asio::awaitable<void> body([[maybe_unused]] asio::any_io_executor executor)

// Helpers that start and find the fork server of this process.
namespace cohort::test {

inline cohort::options served(int count = 1) {
    return cohort::options(count).start_method(cohort::start_method::forkserver);
}

/// The present fork servers of this process, the newest last. Workers that a fork server has made
/// may be among them, because they are its copies and may lead process groups of their own.
inline std::vector<pid_t> servers() {
    std::set<std::pair<unsigned long long, pid_t>> found;
    for (const auto& [pid, process] : all_processes())
        if (process.parent == ::getpid() && process.state != 'Z' && ::getpgid(pid) == pid &&
            read_proc(pid, "cmdline").find("--cohort-server=") != std::string::npos)
            found.emplace(process.started, pid);
    std::vector<pid_t> pids;
    for (const auto& [started, pid] : found)
        pids.push_back(pid);
    return pids;
}

/// Waits until a child has ended and is reaped. Polls for the reap, because no event tells of it.
inline void await_reap(pid_t pid) {
    CHECK(ends_or_has_ended(pid));
    const auto deadline = std::chrono::steady_clock::now() + generous_bound();
    while (::kill(pid, 0) == 0 && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
    INFO(describe(all_processes()[pid]));
    REQUIRE(::kill(pid, 0) != 0);
}

/// Returns when one fork server runs and all earlier ones are gone, so that a leak guard does not
/// see the descriptors that its start opens or their ends close. @return its pid
inline pid_t server() {
    CHECK(ended(cohort::function<do_nothing>(), served()).success());
    // A server that was killed may be there yet, and workers that are killed because their start
    // was given up. Polls, because no event tells which of them is to end.
    const auto deadline = std::chrono::steady_clock::now() + generous_bound();
    auto all = servers();
    while (all.size() > 1 && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::yield();
        all = servers();
    }
    std::string who;
    for (const auto pid : all)
        who += describe(all_processes()[pid]) + '\n';
    CAPTURE(who);
    REQUIRE(all.size() == 1);
    for (const auto& [pid, process] : all_processes())
        if (process.parent == ::getpid() && pid != all.front())
            await_reap(pid);
    REQUIRE(servers() == all);
    // The engine closes a reaped server's descriptor in the same turn. This takes another turn.
    (void)ended(cohort::command("true"));  // not checked, because its exit status may be stolen
    return all.front();
}

/// Kills the server and returns when it is reaped.
inline void kill_server(pid_t pid) {
    ::kill(pid, SIGKILL);
    await_reap(pid);
}

}  // namespace cohort::test
