// SPDX-License-Identifier: BSL-1.0
// Hosts that are reached by commands of this machine: each agent is this program.
#include "group_test.hpp"
#include "pool_support.hpp"
#include "relay_support.hpp"

#include <cohort/cohort.hpp>

#include <asio/cancellation_signal.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

namespace reach_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using words = std::vector<std::string>;

namespace {

/// Hosts that a shell reaches: `script` begins the agent by "$@".
cohort::launcher by_shell(std::string script) {
    const auto make = [script = std::move(script)](const std::string& host, const words& agent) {
        return cohort::command("sh", "-c", script, host).args(agent);
    };
    return cohort::launcher(make);
}

asio::awaitable<cohort::reach_error> error_of(cohort::launcher how) {
    co_return co_await failure_of<cohort::reach_error>(cohort::reach(how));
}

}  // namespace

GROUP_TEST("reach: hosts are reached, live, and are left") {
    auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha", "beta"));
    CHECK(machines.valid());
    CHECK(machines.size() == 2);
    CHECK(machines.names() == words{"alpha", "beta"});
    CHECK(machines.alive() == words{"alpha", "beta"});
    CHECK(machines.lost().empty());
    CHECK(machines.port() == 29500);
    const auto same = machines;
    co_await machines.leave();
    CHECK(same.alive().empty());
    CHECK(same.lost().empty());
    co_await same.leave();
}

GROUP_TEST("reach: a host whose agent is killed is lost, the other lives on") {
    auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha", "beta"));
    const auto pids = agents();
    REQUIRE(pids.size() == 2);
    ::kill(pids[0], SIGKILL);
    co_await until(executor, [&] { return machines.alive().size() == 1; });
    REQUIRE(machines.lost().size() == 1);
    CHECK(machines.lost()[0].find("its launcher ended: signal SIGKILL") != std::string::npos);
    co_await machines.leave();
}

GROUP_TEST("reach: an agent that is told to end says by which signal, and ends") {
    auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha", "beta", "gamma"));
    auto pids = agents();
    REQUIRE(pids.size() == 3);
    ::kill(pids[0], SIGTERM);
    ::kill(pids[1], SIGINT);
    co_await until(executor, [&] { return machines.lost().size() == 2; });
    auto lost = machines.lost();
    for (auto& line : lost)
        line.erase(0, line.find(':'));
    std::sort(lost.begin(), lost.end());
    CHECK(lost == words{": its agent was told to end (SIGINT)",
                        ": its agent was told to end (SIGTERM)"});
    co_await until(executor, [] { return agents().size() == 1; });
    co_await machines.leave();
}

GROUP_TEST("reach: an agent that is told to end twice, or while it leaves, ends once") {
    auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha"));
    const auto pid = agents().at(0);
    ::kill(pid, SIGTERM);
    ::kill(pid, SIGTERM);
    ::kill(pid, SIGINT);
    co_await until(executor, [&] { return machines.alive().empty(); });
    // Of signals that come at once the kernel chooses the first.
    const auto lost = machines.lost();
    CHECK((lost == words{"alpha: its agent was told to end (SIGTERM)"} ||
           lost == words{"alpha: its agent was told to end (SIGINT)"}));
    co_await machines.leave();
    machines = co_await cohort::reach(nearby_hosts().hosts("alpha"));
    ::kill(agents().at(0), SIGTERM);
    co_await machines.leave();
    CHECK(agents().empty());
}

GROUP_TEST("reach: what is no agent is told with host, stage and last words") {
    const auto missing =
        co_await error_of(nearby_hosts().hosts("alpha").program("/nowhere/program"));
    CHECK(missing.host() == "alpha");
    CHECK(missing.stage() == "launcher");
    CHECK(missing.last_words().find("/nowhere/program") != std::string::npos);
    const auto refused =
        co_await error_of(by_shell("echo 'connection refused' >&2; exit 255").hosts("beta"));
    CHECK(refused.stage() == "launcher");
    CHECK(refused.last_words() == "connection refused");
    CHECK(std::string(refused.what()).find("exit code 255") != std::string::npos);
    const auto silent = co_await error_of(by_shell("exit 0").hosts("gamma"));
    CHECK(silent.stage() == "hello");
    CHECK(std::string(silent.what()).find("worker_main") != std::string::npos);
    const auto hangs =
        co_await error_of(by_shell("exec sleep 1000").hosts("delta").reach_within(100ms));
    CHECK(hangs.stage() == "hello");
    CHECK(hangs.code() == std::errc::timed_out);
    const auto echo = co_await error_of(by_shell("exec cat").hosts("eps").reach_within(300ms));
    CHECK(echo.stage() == "hello");
    const auto loud =
        co_await error_of(by_shell("head -c 100000 /dev/zero; sleep 1000").hosts("zeta"));
    CHECK(loud.stage() == "hello");
}

GROUP_TEST("reach: what a profile prints before the hello is skipped") {
    auto machines = co_await cohort::reach(
        by_shell("echo Welcome; echo to the machine; exec \"$@\"").hosts("alpha"));
    CHECK(machines.alive().size() == 1);
    co_await machines.leave();
}

GROUP_TEST("reach: agents get a large environment, but none that no program could have") {
    auto machines = co_await cohort::reach(
        nearby_hosts().hosts("alpha").env("LARGE", std::string(200'000, 'x')));
    CHECK(machines.alive().size() == 1);
    co_await machines.leave();
    auto too_large = nearby_hosts().hosts("alpha").env("LARGE", std::string(9 << 20, 'x'));
    CHECK_THROWS_AS((void)cohort::reach(too_large), std::invalid_argument);
}

GROUP_TEST("reach: a child of the launcher's that holds the link delays nothing") {
    auto machines = co_await cohort::reach(
        by_shell("sleep 1000 & exec \"$@\"").hosts("alpha").host_timeout(1h));
    co_await machines.leave();
    CHECK(machines.alive().empty());
}

GROUP_TEST("reach: another program is refused") {
    const auto other =
        co_await error_of(nearby_hosts().hosts("alpha").program(COHORT_PROGRAM_POOL_HOST));
    CHECK(other.stage() == "program");
    CHECK(other.code() == std::errc::executable_format_error);
}

GROUP_TEST("reach: one host that is not reached lets the others go") {
    const auto error = co_await error_of(
        by_shell("[ $0 = beta ] && exit 3; exec \"$@\"").hosts("alpha", "beta", "gamma"));
    CHECK(error.host() == "beta");
}

GROUP_TEST("reach: a cancelled reach and a dropped handle leave nothing") {
    completed<cohort::hosts> ended;
    asio::cancellation_signal stop;
    cohort::async_reach(executor, by_shell("exec sleep 1000").hosts("alpha", "beta"),
                        ended.into(stop));
    stop.emit(asio::cancellation_type::total);
    co_await until(executor, [&] { return ended.done(); });
    CHECK(ended.aborted());
    CHECK_FALSE(ended.value().valid());
    auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha", "beta"));
    CHECK(agents().size() == 2);
    machines = cohort::hosts();
    co_await until(executor, [] { return agents().empty(); });
}

}  // namespace reach_test
