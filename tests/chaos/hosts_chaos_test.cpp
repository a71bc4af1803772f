// SPDX-License-Identifier: BSL-1.0
// Plays groups on two hosts, which are commands of this machine, with a signal to any of their
// processes at any moment: launchers, agents, guardians and workers. Each group must end, in a way
// that it can, and nothing be left. COHORT_CHAOS_SEED and COHORT_CHAOS_ROUNDS as for the other
// chaos tests.
#include "asked_seed.hpp"
#include "guard.hpp"
#include "guardian.hpp"
#include "plan.hpp"
#include "pool_support.hpp"
#include "procfs.hpp"
#include "watchdog.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace hosts_chaos_test {

using namespace std::chrono_literals;

namespace {

/// The shell stays, so that there is a launcher besides the agent.
cohort::command launch(const std::string& host, const std::vector<std::string>& agent) {
    return cohort::command("sh", "-c", "\"$@\"; exit", host).args(agent);
}

/// The life of two hosts and of a group there. Runs on one thread.
class hosts_play {
public:
    explicit hosts_play(std::uint64_t seed) : random_(static_cast<std::uint32_t>(seed)) {}

    asio::awaitable<void> run();
    /// What is wrong; empty: nothing.
    const std::string& wrong() const { return wrong_; }
    /// How the group has ended.
    const std::string& end() const { return end_; }

private:
    int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    cohort::command work();
    cohort::options options(const cohort::hosts& machines);
    void disturb_soon(asio::any_io_executor on);
    void disturb();
    asio::awaitable<void> run_group(const cohort::hosts& machines);
    asio::awaitable<void> end(cohort::group group);
    void check(const cohort::report& report);

    std::minstd_rand random_;
    int workers_ = 0;
    bool may_fail_ = false;
    std::optional<pid_t> stopped_;
    std::string wrong_;
    std::string end_;
};

cohort::command hosts_play::work() {
    switch (pick(4)) {
    case 0:
        return cohort::command("true");
    case 1:
        may_fail_ = true;
        return cohort::command("sh", "-c", "[ $RANK != 1 ]");
    case 2:
        return cohort::command("sh", "-c", "trap '' TERM; seq 20000; exec sleep 1000");
    default:
        // Without a guardian nobody ends the children of a worker whose agent was killed.
        return cohort::command("sh", "-c",
                               cohort::test::host_has_guardian() ? "seq 20000; sleep 1000 & wait"
                                                                 : "seq 20000; exec sleep 1000");
    }
}

cohort::options hosts_play::options(const cohort::hosts& machines) {
    workers_ = 1 + pick(6);
    auto how = cohort::options(workers_).on(machines).grace_period(100ms).kill_timeout(1s);
    if (pick(3) == 0)
        how.on_failure(cohort::on_failure::keep_going);
    if (pick(4) == 0)
        how.notice_period(std::chrono::milliseconds(pick(100)));
    if (pick(4) == 0)
        how.at_once(1 + pick(3));
    if (pick(4) == 0)
        how.restart(cohort::restarts(1 + pick(2)));
    if (pick(4) == 0) {
        may_fail_ = true;
        how.time_limit(std::chrono::milliseconds(pick(200)));
    }
    switch (pick(4)) {
    case 0:
        how.stdout_to(cohort::lines());
        break;
    case 1:
        how.stdout_to(cohort::capture());
        break;
    default:
        how.stdout_to(cohort::discard());
    }
    return how;
}

void hosts_play::disturb_soon(asio::any_io_executor on) {
    if (pick(5) == 0)
        return;
    const auto when = std::make_shared<asio::steady_timer>(
        on, std::chrono::microseconds(pick(pick(2) == 0 ? 100'000 : 20'000)));
    when->async_wait([this, when](auto) { disturb(); });
}

void hosts_play::disturb() {
    auto there = cohort::test::descendants_of(::getpid(), cohort::test::all_processes());
    std::erase_if(there, [](const auto& each) { return each.parent == 0 || each.state == 'Z'; });
    if (there.empty())
        return;
    const auto& victim = there[static_cast<std::size_t>(pick(static_cast<int>(there.size())))];
    const auto line = cohort::test::read_proc(victim.pid, "cmdline");
    const bool is_link = line.find("--cohort-agent") != std::string::npos;
    constexpr std::array signals{SIGKILL, SIGKILL, SIGTERM, SIGSTOP};
    auto signo = signals.at(static_cast<std::size_t>(pick(4)));
    // A stopped worker or guardian is ended by nobody but who has stopped it.
    if (signo == SIGSTOP && !is_link)
        signo = SIGKILL;
    if (::kill(victim.pid, signo) != 0)
        return;
    may_fail_ = true;
    if (signo == SIGSTOP)
        stopped_ = victim.pid;
    fmt::print("[hosts] signal {} to {} ({})\n", signo, victim.pid,
               is_link ? "agent or launcher" : victim.name);
    std::fflush(stdout);  // a play that hangs is ended with the program
}

void hosts_play::check(const cohort::report& report) {
    if (report.outcomes.size() > static_cast<std::size_t>(workers_))
        wrong_ = fmt::format("{} outcomes of {} workers", report.outcomes.size(), workers_);
    for (const auto& one : report.outcomes)
        if (one.host != "alpha" && one.host != "beta")
            wrong_ = "a worker of no host";
    end_ = report.success() ? "success" : "failure";
}

asio::awaitable<void> hosts_play::end(cohort::group group) {
    switch (pick(4)) {
    case 0:
        end_ = "dropped";
        co_return;
    case 1:
        check(co_await group.stop());
        break;
    case 2:
        (void)co_await group.join(std::chrono::milliseconds(pick(300)));
        check(co_await group.stop());
        break;
    default: {
        asio::steady_timer pause(co_await asio::this_coro::executor,
                                 std::chrono::milliseconds(pick(300)));
        co_await pause.async_wait(asio::use_awaitable);
        group.request_stop();
        check(co_await group.wait());
    }
    }
    if (group.alive() != 0)
        wrong_ = fmt::format("{} workers live after the end", group.alive());
}

asio::awaitable<void> hosts_play::run_group(const cohort::hosts& machines) {
    try {
        co_await end(co_await cohort::spawn(work(), options(machines)));
    } catch (const cohort::process_exception& e) {
        end_ = "thrown by join";
        if (!may_fail_)
            wrong_ = e.what();
    } catch (const cohort::spawn_error& e) {
        end_ = "not started";
        if (!may_fail_)
            wrong_ = e.what();
    }
}

asio::awaitable<void> hosts_play::run() {
    const auto executor = co_await asio::this_coro::executor;
    disturb_soon(executor);
    try {
        const auto machines = co_await cohort::reach(
            cohort::launcher(&launch).hosts("alpha", "beta").host_timeout(2s).reach_within(5s));
        disturb_soon(executor);
        co_await run_group(machines);
        if (pick(4) != 0)
            co_await machines.leave();
    } catch (const cohort::reach_error&) {
        end_ = "not reached";
    }
    if (stopped_)
        ::kill(*stopped_, SIGCONT);
}

/// Waits until nobody is there any more but who was before.
/// @return whether that came to be
bool await_nobody_else(std::size_t before) {
    const auto until = std::chrono::steady_clock::now() + 60s;
    const auto count = [] {
        return cohort::test::descendants_of(::getpid(), cohort::test::all_processes()).size();
    };
    while (count() > before && std::chrono::steady_clock::now() < until)
        ::usleep(1000);  // processes that are not children have no event
    return count() <= before;
}

}  // namespace

TEST_CASE("hosts chaos: groups on hosts end as they should, and nothing is left") {
    {
        const cohort::test::watchdog watchdog;
        chaos::run_out(hosts_play(0).run());  // makes what stays for ever
    }
    const cohort::test::leak_guard guard;
    const auto before =
        cohort::test::descendants_of(::getpid(), cohort::test::all_processes()).size();
    const auto [seed, first] = chaos::asked_seed();
    const int count = chaos::asked_count(10, 1000, 10);
    fmt::print("[hosts] seed {}, {} plays\n", seed, count);
    std::fflush(stdout);
    std::map<std::string, int> ends;
    for (int at = first; at < first + count; ++at) {
        hosts_play play(chaos::derived_seed(seed, at));
        const cohort::test::watchdog watchdog;
        fmt::print("[hosts] play {}\n", at);
        INFO("play ", at, " of COHORT_CHAOS_SEED=", seed, ":", at);
        chaos::run_out(play.run());
        INFO(play.end());
        REQUIRE(play.wrong() == "");
        REQUIRE(await_nobody_else(before));
        ++ends[play.end()];
    }
    for (const auto& [how, times] : ends)
        fmt::print("[hosts] {}: {}\n", how, times);
}

}  // namespace hosts_chaos_test
