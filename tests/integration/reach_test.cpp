// SPDX-License-Identifier: BSL-1.0
// Hosts that are reached by commands of this machine: each agent is this program.
#include "group_test.hpp"
#include "pool_support.hpp"
#include "procfs.hpp"
#include "relay_support.hpp"
#include "scratch.hpp"

#include <cohort/cohort.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
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

bool has_banner(const cohort::reach_error& error) {
    return std::string(error.what()).find("after it had written: banner") != std::string::npos;
}

/// What this process has started, and has not been there before.
std::string started_since(const std::map<pid_t, process_info>& before) {
    std::string found;
    for (const auto& process : descendants_of(::getpid(), all_processes()))
        if (!before.contains(process.pid))
            found += describe(process) + "\n";
    return found;
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
    CHECK(lost ==
          words{": its agent was told to end (SIGINT)", ": its agent was told to end (SIGTERM)"});
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
    CHECK(std::string(hangs.what()).find("worker_main") != std::string::npos);
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

GROUP_TEST("reach: what was printed is told when no hello comes") {
    const auto check = [](const cohort::reach_error& error) {
        CHECK(error.host() == "alpha");
        CHECK(error.stage() == "hello");
    };
    const auto ends =
        co_await error_of(by_shell("echo banner; exec sleep 1000 >&-").hosts("alpha"));
    check(ends);
    CHECK(has_banner(ends));
    // How soon the shell prints is not known.
    for (auto within = 300ms; within < 1min; within *= 2) {
        const auto hangs = co_await error_of(
            by_shell("echo banner; exec sleep 1000").hosts("alpha").reach_within(within));
        check(hangs);
        CHECK(hangs.code() == std::errc::timed_out);
        if (has_banner(hangs))
            co_return;
    }
    FAIL("the banner is never told");
}

GROUP_TEST("reach: agents and their workers are in the launcher's directory") {
    const scratch_directory place;
    const auto path = std::filesystem::canonical(place.path()).string();
    const auto how = nearby_hosts().hosts("alpha").working_directory(path);
    const auto machines = co_await cohort::reach(how);
    const auto report = co_await cohort::run(
        cohort::command("pwd", "-P"), cohort::options(1).on(machines).stdout_to(cohort::capture()));
    CHECK(report.outcomes[0].out.text() == path + "\n");
}

GROUP_TEST("reach: a launcher's directory that is not there is told by name") {
    const auto error =
        co_await error_of(nearby_hosts().hosts("alpha").working_directory("/nowhere"));
    CHECK(error.host() == "alpha");
    CHECK(error.stage() == "hello");
    CHECK(error.code() == std::errc::no_such_file_or_directory);
    CHECK(std::string(error.what()).find("chdir(\"/nowhere\")") != std::string::npos);
}

GROUP_TEST("reach: agents get a large environment, but none that no program could have") {
    auto machines = co_await cohort::reach(
        nearby_hosts().hosts("alpha").env("LARGE", std::string(200'000, 'x')));
    CHECK(machines.alive().size() == 1);
    co_await machines.leave();
    auto too_large = nearby_hosts().hosts("alpha").env("LARGE", std::string(9 << 20, 'x'));
    auto start = cohort::reach(too_large);
    CHECK_THROWS_AS((void)co_await std::move(start), std::invalid_argument);
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

GROUP_TEST("reach: cancelled when one host is there and another hangs, all have ended by then") {
    const scratch_directory place;
    const auto path = std::filesystem::canonical(place.path());
    const auto is_welcome = [&] {
        const auto pids = agents();
        std::error_code error;
        return pids.size() == 1 && std::filesystem::read_symlink(
                                       "/proc/" + std::to_string(pids[0]) + "/cwd", error) == path;
    };
    const auto before = all_processes();
    completed<cohort::hosts> ended;
    std::string left = "not looked";
    asio::cancellation_signal stop;
    const auto look = [&](std::exception_ptr error, cohort::hosts reached) {
        left = started_since(before);
        ended.into()(std::move(error), std::move(reached));
    };
    auto how = by_shell("[ $0 = beta ] && exec sleep 1000; exec \"$@\"");
    how.hosts("alpha", "beta").working_directory(path);
    cohort::async_reach(executor, how, asio::bind_cancellation_slot(stop.slot(), look));
    co_await until(executor, is_welcome);
    stop.emit(asio::cancellation_type::total);
    co_await until(executor, [&] { return ended.done(); });
    CHECK(ended.aborted());
    CHECK(left == "");
}

GROUP_TEST("reach: an awaitable that is dropped closes its links at once") {
    const auto how = nearby_hosts().hosts("alpha", "beta");
    (void)cohort::reach(how);  // the library's own descriptors are there now
    const auto before = open_descriptors();
    for (int i = 0; i < 100; ++i)
        (void)cohort::reach(how);
    CHECK(open_descriptors() == before);
    co_return;
}

}  // namespace reach_test
