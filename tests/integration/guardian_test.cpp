// SPDX-License-Identifier: BSL-1.0
// The guardian: what workers have started ends after a host that was killed, by the ladder, and
// nobody else is signalled.
#include "guardian.hpp"
#include "guardian_support.hpp"
#include "held_process.hpp"
#include "live_support.hpp"
#include "methods.hpp"
#include "procfs.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "scratch.hpp"
#include "start_support.hpp"

#include <cohort/capabilities.hpp>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>

#include <unistd.h>

namespace guardian_test {

namespace {

using namespace std::chrono_literals;
using namespace cohort::test;
using cohort::start_method;

/// Each process at the bottom of the tree that a host makes: of two levels twice as many.
constexpr int at_the_bottom = 8;

/// Kills a host when so many of its processes are ready; all of them end.
asio::awaitable<void> kill_tree(start_method method, int levels, int when_ready) {
    live_host host(co_await asio::this_coro::executor);
    co_await host.start_tree(method, levels, 300);
    co_await host.held.wait(when_ready);
    co_await host.kill();
    co_await host.until_all_are_gone();
}

void nothing(int) {}

}  // namespace

TEST_CASE("guardian: children of workers end after their host is killed, over all start methods") {
    if (!has_guardian())
        return;
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        const leak_guard guard;
        run_coroutine(kill_tree(method, 1, at_the_bottom));
    }
}

TEST_CASE("guardian: groups of groups, three levels deep, end with what they started") {
    if (!has_guardian())
        return;
    for (const auto method : all_methods) {
        if (!groups_in_copies && method == start_method::fork)
            continue;
        CAPTURE(static_cast<int>(method));
        const leak_guard guard;
        run_coroutine(kill_tree(method, 3, 4 * at_the_bottom));
    }
}

TEST_CASE("guardian: a host that is killed at any moment of its start leaves nobody") {
    if (!has_guardian())
        return;
    for (const auto method : all_methods)
        for (int ready = 0; ready < at_the_bottom; ++ready) {
            CAPTURE(static_cast<int>(method));
            CAPTURE(ready);
            const leak_guard guard;
            run_coroutine(kill_tree(method, 1, ready));
        }
}

TEST_CASE("guardian: processes that obey the stop signal have time to clean up") {
    if (!has_guardian())
        return;
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        live_host host(co_await asio::this_coro::executor);
        co_await host.start_tree(start_method::spawn, 1, 1000);
        co_await host.held.wait(at_the_bottom);
        const auto begin = std::chrono::steady_clock::now();
        co_await host.kill();
        co_await host.until_all_are_gone();
        // The stubborn ones are there for the whole grace period.
        CHECK(std::chrono::steady_clock::now() - begin > 900ms);
        CHECK(read_file(host.directory.file("cleaned")) != "");
    }());
}

TEST_CASE("guardian: a daemon with a session of its own ends with its application's cgroup") {
    if (!has_guardian())
        return;
    if (cohort::capabilities().tree.tier.rfind("cgroup", 0) != 0)
        return skip(cohort::capabilities().tree.reason);
    for (const auto method : all_methods) {
        if (!groups_in_copies && method == start_method::fork)
            continue;
        CAPTURE(static_cast<int>(method));
        const leak_guard guard;
        run_coroutine([](start_method how) -> asio::awaitable<void> {
            live_host host(co_await asio::this_coro::executor);
            co_await host.start(
                cohort::command(COHORT_PROGRAM_GUARDED_HOST, "daemon", static_cast<int>(how)));
            co_await host.held.wait(2);  // the inner group has a leaf as well
            const auto leaves = leaves_of(host.pid());
            REQUIRE(leaves.size() == 1);
            nest_cgroups(*leaves.begin());
            const held_process daemon(host.directory.file("daemon"));
            const held_process guardian(await_guardian(host.pid()));
            co_await host.kill();
            CHECK(daemon.ends());
            CHECK(guardian.ends());
            CHECK(leaves_of(host.pid()).empty());
        }(method));
    }
}

TEST_CASE(
    "guardian: it is no child of the application, not in its session, and shares no descriptor") {
    if (!has_guardian())
        return;
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        live_host host(co_await asio::this_coro::executor);
        co_await host.start(cohort::command(COHORT_PROGRAM_GUARDED_HOST, "plain"));
        co_await host.held.wait();
        const pid_t pid = await_guardian(host.pid());
        REQUIRE(pid != 0);
        const held_process guardian(pid);
        CHECK(all_processes().at(pid).parent != host.pid());
        CHECK(::getsid(pid) == pid);
        // Stdio, the host, the connection, /dev/shm, one worker and its leaf.
        const auto open = names_in("/proc/" + std::to_string(pid) + "/fd");
        CHECK(open.size() <= 8);  // it takes its time to hear of the worker
        co_await host.kill();
        co_await host.until_all_are_gone();
        CHECK(guardian.ends());
    }());
}

GROUP_TEST("guardian: the host's wait finds no other child than its workers") {
    live_host host(executor);
    co_await host.start(cohort::command(COHORT_PROGRAM_GUARDED_HOST, "unseen"));
    const auto told = co_await host.group.wait();
    CHECK(told.outcomes[0].success());
    CHECK(read_file(host.directory.file("out")) == "no child\n");
}

TEST_CASE("guardian: a copy of the host that lives on does not keep it from acting") {
    if (!has_guardian())
        return;
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        live_host host(co_await asio::this_coro::executor);
        co_await host.start(cohort::command(COHORT_PROGRAM_GUARDED_HOST, "forked"));
        co_await host.held.wait();
        co_await host.kill();
        co_await host.until_all_are_gone();
    }());
}

TEST_CASE("guardian: a guardian held by SIGSTOP does not disturb the application") {
    if (!has_guardian())
        return;
    const leak_guard guard;
    const held_process guardian(await_guardian(::getpid()));
    guardian.signal(SIGSTOP);
    run_coroutine([]() -> asio::awaitable<void> {
        // More than fit into the connection.
        for (int i = 0; i < 20; ++i)
            CHECK((co_await cohort::run(cohort::command("true"), 20)).success());
    }());
    guardian.signal(SIGCONT);
    CHECK(guardian.lives());
}

TEST_CASE("guardian: a killed guardian is replaced when a group next starts, by any method") {
    if (!has_guardian())
        return;
    // Where there is a cgroup, the message about it fails; else a start looks for the guardian.
    const auto replaces = [](cohort::start_method method, cohort::cgroup place) {
        CAPTURE(static_cast<int>(method));
        CAPTURE(static_cast<int>(place));
        const auto run_some = [&] {
            CHECK(ended(cohort::function<nothing>(),
                        cohort::options(3).start_method(method).cgroup(place))
                      .success());
        };
        run_some();
        const pid_t pid = await_guardian(::getpid());
        REQUIRE(pid != 0);
        const held_process guardian(pid);
        guardian.signal(SIGKILL);
        CHECK(guardian.ends());
        run_some();
        const pid_t other = await_guardian(::getpid());
        CHECK(other != 0);
        CHECK(other != pid);
        const leak_guard guard;
        run_some();
        CHECK(await_guardian(::getpid()) == other);
    };
    for (const auto method : all_methods)
        for (const auto place : {cohort::cgroup::automatic, cohort::cgroup::off})
            replaces(method, place);
}

GROUP_TEST(
    "guardian: without one the workers end with the application, but not their own children") {
    live_host host(executor);
    co_await host.start(
        cohort::command(COHORT_PROGRAM_GUARDED_HOST, "forked").env("COHORT_FORCE", "no_guardian"));
    co_await host.held.wait();
    CHECK(guardian_of(host.pid()) == 0);
    const auto child = child_of_worker(host.pid());
    REQUIRE(child.pid != 0);
    const held_process orphan(child.pid);
    co_await host.kill();
    CHECK(orphan.lives());
    orphan.signal(SIGKILL);
    co_await host.until_all_are_gone();
}

}  // namespace guardian_test
