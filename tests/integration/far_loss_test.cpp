// SPDX-License-Identifier: BSL-1.0
// Groups on several hosts of which one is lost: the link, the agent or the launcher ends, or stops.
#include "far_support.hpp"
#include "group_test.hpp"
#include "memory_limit.hpp"
#include "pool_support.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace far_loss_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;

namespace {

cohort::command sleeping() { return cohort::command("sleep", "1000"); }

asio::awaitable<cohort::hosts> hosts_that_beat() {
    co_return co_await cohort::reach(nearby_hosts().hosts("alpha", "beta").host_timeout(2s));
}

bool lives(pid_t pid) { return all_processes().contains(pid); }

/// Starts a program that no group of this process has.
pid_t start_program(std::vector<std::string> words) {
    std::vector<char*> argv;
    for (auto& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t started = 0;
    REQUIRE(::posix_spawn(&started, argv[0], nullptr, nullptr, argv.data(), environ) == 0);
    return started;
}

/// Checks that the workers of beta, which are 2 and 3, were lost and that the others were stopped.
void check_beta_lost(const cohort::host_lost& error) {
    CHECK(error.host() == "beta");
    CHECK(error.error_index() == 2);
    REQUIRE(error.outcomes().size() == 4);
    for (const auto& one : error.outcomes()) {
        CHECK(one.cause == (one.index < 2 ? cause::stopped : cause::host_lost));
        CHECK(one.host == (one.index < 2 ? "alpha" : "beta"));
        CHECK_FALSE(one.success());
        CHECK(one.pid > 0);
    }
    CHECK(error.outcomes()[2].first_failure);
}

int told = -1;

/// Says when it is there, and when it has SIGTERM.
void outlives_sigterm(int, std::string path) {
    told = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    std::signal(SIGTERM, [](int) { (void)!::write(told, "t", 1); });
    (void)!::write(told, "r", 1);
    for (;;)
        ::pause();
}

/// Returns a large text when it has SIGUSR1.
std::string returns_much(int, std::string path) {
    wait_for_go(SIGUSR1, [&] { say_ready_at(path); });
    return std::string(std::size_t{300} << 20, 'x');
}

}  // namespace

GROUP_TEST("far loss: a killed agent takes its workers along, and the other host's are stopped") {
    const auto machines = co_await hosts_that_beat();
    auto group = co_await cohort::spawn(sleeping(), cohort::options(4).on(machines));
    const auto workers = group.pids();
    ::kill(agent_of(workers[2]), SIGKILL);
    const auto error = co_await failure<cohort::host_lost>(group);
    check_beta_lost(error);
    CHECK(std::string(error.what()).find("signal SIGKILL") != std::string::npos);
    co_await until(executor, [&] { return std::ranges::none_of(workers, lives); });
    CHECK(machines.alive() == std::vector<std::string>{"alpha"});
    const auto again = [&] { (void)cohort::spawn(sleeping(), cohort::options(4).on(machines)); };
    CHECK_THROWS_AS(again(), cohort::host_lost);
    const auto rest = machines.alive_only();
    CHECK(rest.size() == 1);
    const auto report = co_await cohort::run(cohort::command("true"), cohort::options(2).on(rest));
    CHECK(report.outcomes[1].host == "alpha");
}

GROUP_TEST("far loss: a stopped agent is lost at host_timeout, and ends its workers later") {
    const auto machines = co_await hosts_that_beat();
    auto group = co_await cohort::spawn(sleeping(), cohort::options(4).on(machines));
    const auto workers = group.pids();
    const pid_t agent = agent_of(workers[2]);
    ::kill(agent, SIGSTOP);
    const auto error = co_await failure<cohort::host_lost>(group);
    check_beta_lost(error);
    CHECK(std::string(error.what()).find("no beat for 2 s") != std::string::npos);
    ::kill(agent, SIGCONT);
    co_await until(executor, [&] { return std::ranges::none_of(workers, lives); });
}

GROUP_TEST("far loss: a failure that came before the loss is thrown") {
    const auto machines = co_await hosts_that_beat();
    auto group = co_await cohort::spawn(
        sleeping(), cohort::options(4).on(machines).on_failure(cohort::on_failure::keep_going));
    const auto workers = group.pids();
    group.signal(0, SIGUSR1);
    const auto first = co_await group.next();
    REQUIRE(first);
    CHECK(first->index == 0);
    group.signal(3, SIGUSR1);  // so that beta has said something later than that
    CHECK((co_await group.next())->index == 3);
    ::kill(agent_of(workers[2]), SIGKILL);
    const auto lost = co_await group.next();
    REQUIRE(lost);
    CHECK(lost->cause == cause::host_lost);
    group.signal(1, SIGKILL);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    // Which of the two came first is known up to half a round trip, however long that takes here.
    CHECK((error.error_index() == 0 || error.error_index() == 3));
}

GROUP_TEST("far loss: a host that is lost while its group stops is told") {
    const auto machines = co_await hosts_that_beat();
    ready_by_path ready(executor);
    auto group = co_await cohort::spawn(cohort::function<outlives_sigterm>(ready.path()),
                                        cohort::options(2).on(machines).grace_period(60s));
    co_await ready.wait(2);
    const auto workers = group.pids();
    const auto of_beta = descendants_of(agent_of(workers[1]), all_processes());
    group.request_stop();
    co_await ready.wait(2);
    ::kill(agent_of(workers[1]), SIGKILL);
    ::kill(-workers[0], SIGKILL);
    const auto report = co_await group.wait();
    CHECK(report.outcomes[0].cause == cause::stopped);
    CHECK(report.outcomes[1].cause == cause::host_lost);
    co_await until(executor, [&] {
        return std::ranges::none_of(of_beta, [](const auto& each) { return lives(each.pid); });
    });
}

GROUP_TEST("far loss: an agent that is told to end is the host's failure, not its workers'") {
    const auto machines = co_await hosts_that_beat();
    auto group = co_await cohort::spawn(sleeping(), cohort::options(4).on(machines));
    const auto workers = group.pids();
    ::kill(agent_of(workers[2]), SIGTERM);
    const auto error = co_await failure<cohort::host_lost>(group);
    CHECK(error.host() == "beta");
    CHECK(std::string(error.what()).find("told to end (SIGTERM)") != std::string::npos);
    CHECK(error.outcomes()[0].cause == cause::stopped);
    CHECK(std::ranges::none_of(workers, lives));
}

GROUP_TEST("far loss: the origin is killed, and its workers get their ladder") {
    const scratch_directory files;
    ready_by_path ready(executor);
    const auto script = "trap 'echo > " + files.file("stopped") +
                        ".$RANK; exit' TERM; echo -n r > $0; while :; do sleep 1000 & wait; done";
    const pid_t origin = start_program(
        {COHORT_PROGRAM_HOSTS_ORIGIN, ready.path(), "sh", "-c", script, ready.path()});
    co_await ready.wait(5);  // the workers of a start that goes on would be killed at once
    const auto before = descendants_of(origin, all_processes());
    CHECK(before.size() >= 6);
    ::kill(origin, SIGKILL);
    CHECK(::waitpid(origin, nullptr, 0) == origin);
    co_await until(executor, [&] {
        return std::ranges::none_of(before, [](const auto& each) { return lives(each.pid); });
    });
    for (const auto* const rank : {".0", ".1", ".2", ".3"})
        CHECK(read_file(files.file("stopped") + rank) == "\n");
}

GROUP_TEST("far loss: a host that says more than this program has memory for is lost for that") {
    if (under_asan || under_tsan) {
        skip(sanitizer_needs_memory);
        co_return;
    }
    const auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha"));
    ready_by_path up(executor);
    auto group = co_await cohort::spawn(cohort::function<returns_much>(up.path()),
                                        cohort::options(1).on(machines));
    co_await up.wait(1);
    const memory_limit limit(std::size_t{100} << 20);
    group.signal(SIGUSR1);
    const auto error = co_await failure<cohort::host_lost>(group);
    const auto why = "this program has no memory for what its agent has sent";
    CHECK(std::string(error.what()).find(why) != std::string::npos);
}

}  // namespace far_loss_test
