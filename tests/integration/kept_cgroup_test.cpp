// SPDX-License-Identifier: BSL-1.0
// The cgroup that a group has left empty is kept for the next group of the process, and goes with the
// process. The checks of the host are in programs/keeping_host.
#include "guardian.hpp"
#include "held_process.hpp"
#include "live_support.hpp"
#include "methods.hpp"
#include "procfs.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"

#include <cohort/capabilities.hpp>

#include <csignal>
#include <string>

namespace kept_cgroup_test {

namespace {

using namespace cohort::test;

bool has_cgroups() {
    const auto tree = cohort::capabilities().tree;
    if (tree.tier.rfind("cgroup", 0) == 0)
        return true;
    skip(tree.reason);
    return false;
}

/// The host's own cgroup is the test's.
cohort::options in_own_cgroup() { return cohort::options(1).cgroup(cohort::cgroup::off); }

/// Runs the host to its end. @return the cgroups that it has left
std::set<std::string> left_by(const char* how) {
    std::set<std::string> left;
    run_coroutine([](auto& left, auto host) -> asio::awaitable<void> {
        auto group = co_await cohort::spawn(host, in_own_cgroup());
        const pid_t pid = group.pids()[0];
        co_await group.join();
        left = leaves_of(pid);
    }(left, cohort::command(COHORT_PROGRAM_KEEPING_HOST, how)));
    return left;
}

}  // namespace

TEST_CASE("kept cgroup: exit removes it") {
    if (!has_cgroups())
        return;
    const leak_guard guard;
    CHECK(left_by("exit").empty());
}

TEST_CASE("kept cgroup: a forked copy of the host neither uses nor removes it") {
    if (!has_cgroups())
        return;
    if (under_tsan)
        return skip(no_threads_in_copies);
    const leak_guard guard;
    CHECK(left_by("fork").empty());
}

TEST_CASE("kept cgroup: the guardian of a host that was killed removes it") {
    if (!has_cgroups())
        return;
    if (!cohort::capabilities().parent_death.best())
        return skip("no guardian here: " + cohort::capabilities().parent_death.reason);
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        ready up(co_await asio::this_coro::executor);
        auto host = co_await cohort::spawn(cohort::command(COHORT_PROGRAM_KEEPING_HOST, "wait"),
                                           in_own_cgroup().fd(up.child_end(), ready::number));
        co_await up.wait();
        const pid_t pid = host.pids()[0];
        CHECK(leaves_of(pid).size() == 1);
        const held_process guardian(await_guardian(pid));
        host.signal(SIGKILL);
        (void)co_await host.wait();
        CHECK(guardian.ends());
        CHECK(leaves_of(pid).empty());
    }());
}

}  // namespace kept_cgroup_test
