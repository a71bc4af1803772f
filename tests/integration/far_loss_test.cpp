// SPDX-License-Identifier: BSL-1.0
// Groups on several hosts of which one is lost: the link, the agent or the launcher ends, or stops.
#include "far_support.hpp"
#include "group_test.hpp"
#include "memory_limit.hpp"
#include "pool_support.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "scratch.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iterator>
#include <string>
#include <utility>
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

/// An origin, which is another program. Its four workers write a file when they are told to end.
class trapping_origin {
public:
    trapping_origin(asio::any_io_executor executor, std::string host_timeout)
        : ready_(std::move(executor)) {
        const auto script =
            "trap 'echo > " + files_.file("stopped") +
            ".$RANK; exit' TERM; echo -n r > $0; while :; do sleep 1000 & wait; done";
        pid_ = start_program({COHORT_PROGRAM_HOSTS_ORIGIN, ready_.path(), std::move(host_timeout),
                              "sh", "-c", script, ready_.path()});
    }
    /// @return all that it has started
    asio::awaitable<std::vector<process_info>> wait_until_started() {
        co_await ready_.wait(5);  // the workers of a start that goes on would be killed at once
        auto started = descendants_of(pid_, all_processes());
        CHECK(started.size() >= 6);
        co_return started;
    }
    pid_t pid() const noexcept { return pid_; }
    void signal(int signo) const { ::kill(pid_, signo); }
    /// @return its status, as waitpid() gives it
    int end() const {
        int status = -1;
        CHECK(::waitpid(pid_, &status, 0) == pid_);
        return status;
    }
    void check_ladder() const {
        for (const auto* const rank : {".0", ".1", ".2", ".3"})
            CHECK(read_file(files_.file("stopped") + rank) == "\n");
    }

private:
    scratch_directory files_;
    ready_by_path ready_;
    pid_t pid_ = 0;
};

/// Whether it has ended. Its parent need not have seen that.
bool is_over(const process_info& each) {
    const auto all = all_processes();
    const auto found = all.find(each.pid);
    return found == all.end() || found->second.state == 'Z';
}

/// The agents among these, and what the agents have started.
std::vector<process_info> at_hosts(const std::vector<process_info>& started) {
    const auto all = all_processes();
    std::vector<process_info> found;
    for (const auto& each : started)
        if (is_agent(each.pid)) {
            found.push_back(each);
            std::ranges::copy(descendants_of(each.pid, all), std::back_inserter(found));
        }
    CHECK(found.size() >= 6);
    return found;
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
    return std::string(std::size_t{150} << 20, 'x');
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
    auto again = cohort::spawn(sleeping(), cohort::options(4).on(machines));
    CHECK_THROWS_AS((void)co_await std::move(again), cohort::host_lost);
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

GROUP_TEST("far loss: a host whose agent ends starts nothing, and is lost for that start") {
    const auto machines = co_await hosts_that_beat();
    ready_by_path told(executor);
    auto group = co_await cohort::spawn(cohort::function<outlives_sigterm>(told.path()),
                                        cohort::options(2).on(machines).grace_period(1h));
    co_await told.wait(2);
    const auto workers = group.pids();
    ::kill(agent_of(workers[1]), SIGTERM);
    co_await told.wait(1);
    const auto error = co_await failure_of<cohort::host_lost>(
        cohort::spawn(sleeping(), cohort::options(4).on(machines)));
    CHECK(error.host() == "beta");
    CHECK(error.error_index() == 2);
    CHECK(std::string(error.what()).find("told to end (SIGTERM)") != std::string::npos);
    for (const pid_t worker : workers)
        ::kill(worker, SIGKILL);
    CHECK((co_await failure<cohort::host_lost>(group)).host() == "beta");
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
    trapping_origin origin(executor, "10");
    const auto before = co_await origin.wait_until_started();
    origin.signal(SIGKILL);
    CHECK(WTERMSIG(origin.end()) == SIGKILL);
    co_await until(executor, [&] {
        return std::ranges::none_of(before, [](const auto& each) { return lives(each.pid); });
    });
    origin.check_ladder();
}

GROUP_TEST("far loss: the origin calls exit(), and its workers have had their ladder by then") {
    trapping_origin origin(executor, "10");
    const auto before = co_await origin.wait_until_started();
    const auto of_hosts = at_hosts(before);
    origin.signal(SIGUSR1);
    const int status = origin.end();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 3);
    origin.check_ladder();
    // What a worker leaves behind is killed, and may take a moment to be gone.
    CHECK(std::ranges::all_of(
        of_hosts, [](const auto& each) { return each.name == "sleep" || is_over(each); }));
    co_await until(executor, [&] {
        return std::ranges::none_of(before, [](const auto& each) { return lives(each.pid); });
    });
}

GROUP_TEST("far loss: the origin is stopped longer than host_timeout, and nobody waits for it") {
    trapping_origin origin(executor, "2");
    const auto of_hosts = at_hosts(co_await origin.wait_until_started());
    origin.signal(SIGSTOP);
    co_await until(executor, [&] { return std::ranges::all_of(of_hosts, is_over); });
    origin.check_ladder();
    CHECK(all_processes().at(origin.pid()).state == 'T');
    origin.signal(SIGCONT);
    const int status = origin.end();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 4);  // it says host_lost
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
