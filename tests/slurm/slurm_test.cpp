// SPDX-License-Identifier: BSL-1.0
// Hosts that srun reaches: the nodes of a cluster on this machine, which rig.py makes. It runs this
// program in an allocation of two nodes.
#include "group_test.hpp"
#include "held_process.hpp"
#include "pool_support.hpp"
#include "procfs.hpp"

#include <cohort/cohort.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace slurm_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using words = std::vector<std::string>;

namespace {

/// The agents in the steps of this job, on any of the nodes.
std::vector<pid_t> agents() {
    const auto job = std::string("SLURM_JOB_ID=") + std::getenv("SLURM_JOB_ID");
    std::vector<pid_t> found;
    for (const auto& [pid, process] : all_processes())
        if (is_agent(pid) && has_in_environment(pid, job))
            found.push_back(pid);
    return found;
}

/// The srun that this process has started for a node, but not srun's own child.
pid_t srun_of(const std::string& node) {
    const auto all = all_processes();
    for (const auto& process : descendants_of(::getpid(), all)) {
        if (process.name != "srun" || all.at(process.parent).name == "srun")
            continue;
        const auto line = read_proc(process.pid, "cmdline");
        if (line.find(std::string("-w") + '\0' + node + '\0') != line.npos)
            return process.pid;
    }
    throw std::logic_error("no srun for " + node);
}

template <class E>
asio::awaitable<E> error_of(cohort::group& group) {
    co_return co_await failure_of<E>(group.join());
}

bool none_lives(const std::vector<pid_t>& pids) {
    const auto all = all_processes();
    return std::ranges::none_of(pids, [&](pid_t pid) { return all.contains(pid); });
}

/// The slurmd of a node of this cluster.
pid_t slurmd_of(const std::string& node) {
    const auto cluster = std::string("SLURM_CONF=") + std::getenv("SLURM_CONF");
    for (const auto& [pid, process] : all_processes())
        if (process.name == "slurmd" && has_in_environment(pid, cluster) &&
            read_proc(pid, "cmdline").find(std::string("-N") + '\0' + node) != std::string::npos)
            return pid;
    throw std::logic_error("no slurmd of " + node);
}

/// A job of this case alone, for slurm() to find.
class other_job {
public:
    other_job() : outer_(std::getenv("SLURM_JOB_ID")) {
        run("salloc -Q --no-shell --no-kill --nodes=2 --ntasks-per-node=1 --job-name=cohort-other");
        std::array<char, 100> id{};
        FILE* const said = ::popen("squeue -h -o %A --name=cohort-other", "re");
        const bool is_there = std::fgets(id.data(), id.size(), said) != nullptr;
        ::pclose(said);
        if (!is_there)
            throw std::runtime_error("squeue does not show the job");
        ::setenv("SLURM_JOB_ID", std::to_string(std::atoi(id.data())).c_str(), 1);
    }
    other_job(const other_job&) = delete;
    other_job& operator=(const other_job&) = delete;
    ~other_job() {
        ::setenv("SLURM_JOB_ID", outer_.c_str(), 1);
        (void)!std::system("scancel --signal=KILL --name=cohort-other 2>/dev/null");
    }
    void cancel() const { run("scancel --name=cohort-other"); }
    /// Its time is over as soon as the controller looks, which it does twice a minute.
    void let_time_run_out() const {
        run("scontrol update EndTime=now JobId=" + std::string(std::getenv("SLURM_JOB_ID")));
    }

private:
    static void run(const std::string& line) {
        if (const int status = std::system(line.c_str()); status != 0)
            throw std::runtime_error(line + ": status " + std::to_string(status));
    }

    std::string outer_;
};

/// A group in a job that ends before it has lost a host, and nobody lives on.
asio::awaitable<void> lose_by(asio::any_io_executor executor, void (other_job::*end)() const) {
    const other_job job;
    auto machines = co_await cohort::reach(cohort::slurm());
    auto group = co_await cohort::spawn(cohort::command("sleep", "1000"),
                                        cohort::options(4).on(machines).grace_period(1s));
    const auto workers = group.pids();
    (job.*end)();
    const auto error = co_await error_of<cohort::host_lost>(group);
    CHECK(std::string(error.what()).find("was told to end") != std::string::npos);
    co_await until(executor, [&] { return none_lives(workers) && agents().empty(); });
}

}  // namespace

GROUP_TEST("slurm: the nodes of the allocation are reached, and are left") {
    auto machines = co_await cohort::reach(cohort::slurm());
    CHECK(machines.names() == words{"n1", "n2"});
    CHECK(machines.alive() == words{"n1", "n2"});
    CHECK(agents().size() == 2);
    co_await machines.leave();
    CHECK(machines.lost().empty());
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("slurm: some of the nodes are reached beside a step that has all CPUs") {
    auto all = co_await cohort::reach(cohort::slurm());
    auto some = co_await cohort::reach(cohort::slurm().nodes(1));
    CHECK(some.names() == words{"n1"});
    co_await some.leave();
    CHECK(all.alive().size() == 2);
    co_await all.leave();
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("slurm: more nodes than the allocation has are refused") {
    const auto error =
        co_await failure_of<std::invalid_argument>(cohort::reach(cohort::slurm().nodes(3)));
    CHECK(std::string(error.what()) == "cohort: nodes: 3, but the allocation has 2");
}

GROUP_TEST("slurm: what srun says is told when a program is missing") {
    const auto error = co_await failure_of<cohort::reach_error>(
        cohort::reach(cohort::slurm().program("/nowhere/program")));
    CHECK(error.stage() == "launcher");
    CHECK(error.last_words().find("/nowhere/program") != std::string::npos);
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("slurm: a node whose srun is killed is lost, and its agent ends") {
    auto machines = co_await cohort::reach(cohort::slurm().host_timeout(5s));
    ::kill(srun_of("n1"), SIGKILL);
    co_await until(executor, [&] { return machines.lost().size() == 1; });
    CHECK(machines.lost()[0].starts_with("n1: its launcher ended: signal SIGKILL"));
    co_await until(executor, [] { return agents().size() == 1; });
    CHECK(machines.alive() == words{"n2"});
    co_await machines.leave();
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("slurm: a node whose slurmstepd is killed is lost, and its agent ends") {
    auto machines = co_await cohort::reach(cohort::slurm().host_timeout(5s));
    const auto first = agents().at(0);
    ::kill(all_processes().at(first).parent, SIGKILL);
    co_await until(executor, [&] { return machines.lost().size() == 1; });
    CHECK(machines.lost()[0].find("no beat for 5 s") != std::string::npos);
    co_await until(executor, [] { return agents().size() == 1; });
    CHECK(machines.alive().size() == 1);
    co_await machines.leave();
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("slurm: nodes of a job that is cancelled are lost, because their agents are told") {
    const other_job job;
    auto machines = co_await cohort::reach(cohort::slurm());
    job.cancel();
    co_await until(executor, [&] { return machines.lost().size() == 2; });
    for (const auto& line : machines.lost())
        CHECK(line.substr(2) == ": its agent was told to end (SIGTERM)");
    co_await until(executor, [] { return agents().empty(); });
    co_await machines.leave();
}

GROUP_TEST("slurm: a group runs on both nodes, and its first failure stops the others") {
    auto machines = co_await cohort::reach(cohort::slurm());
    const auto fails = [](int index) {
        return index == 9 ? cohort::command("sh", "-c", "exit 3")
                          : cohort::command("sleep", "1000");
    };
    auto group =
        co_await cohort::spawn(cohort::command_for(fails), cohort::options(16).on(machines));
    const auto error = co_await error_of<cohort::process_exited_exception>(group);
    CHECK(error.error_index() == 9);
    REQUIRE(error.outcomes().size() == 16);
    CHECK(error.outcomes()[7].host == "n1");
    CHECK(error.outcomes()[8].host == "n2");
    CHECK(error.outcomes()[0].cause == cohort::cause::stopped);
    co_await machines.leave();
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("slurm: a group of a job that is cancelled has lost its host, not a worker") {
    co_await lose_by(executor, &other_job::cancel);
}

GROUP_TEST("slurm: a group whose slurmstepd is killed has lost its host, and nobody lives on") {
    auto machines = co_await cohort::reach(cohort::slurm().host_timeout(5s));
    auto group = co_await cohort::spawn(cohort::command("sleep", "1000"),
                                        cohort::options(4).on(machines).grace_period(1s));
    const auto workers = group.pids();
    ::kill(all_processes().at(agents().at(0)).parent, SIGKILL);
    const auto error = co_await error_of<cohort::host_lost>(group);
    CHECK(error.outcomes().size() == 4);
    co_await until(executor, [&] { return none_lives(workers); });
    co_await machines.leave();
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("slurm: a group of a job whose time runs out has lost its hosts, and nobody lives on") {
    co_await lose_by(executor, &other_job::let_time_run_out);
}

// The last one, because the node stays without it.
GROUP_TEST("slurm: a group outlives the slurmd of its node, and the node takes no new agent") {
    auto machines = co_await cohort::reach(cohort::slurm());
    const auto fails_when_told = cohort::command("sh", "-c", "read line; exit 3");
    auto group = co_await cohort::spawn(fails_when_told,
                                        cohort::options(2).on(machines).stdin_from(cohort::feed()));
    const pid_t daemon = slurmd_of("n1");
    ::kill(daemon, SIGKILL);
    REQUIRE(ends_or_has_ended(daemon));
    co_await group.write(0, "now\n");
    const auto error = co_await error_of<cohort::process_exited_exception>(group);
    CHECK(error.error_index() == 0);
    CHECK(error.outcomes()[0].host == "n1");
    co_await machines.leave();
    CHECK(machines.lost().empty());
    co_await until(executor, [] { return agents().empty(); });
    const auto refused =
        co_await failure_of<cohort::reach_error>(cohort::reach(cohort::slurm().reach_within(5s)));
    CHECK(refused.host() == "n1");
}

}  // namespace slurm_test
