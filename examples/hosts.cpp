// SPDX-License-Identifier: BSL-1.0
// One group on several machines: where its workers run, what they print, a failure, a lost host.
//   hosts                two hosts that both are this machine
//   hosts node1 node2    these hosts, by ssh
//   sbatch hosts.sh      the nodes of a Slurm job, with this hosts.sh:
//
//     #!/bin/sh
//     #SBATCH --nodes=2 --exclusive --no-kill
//     exec ./hosts
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

asio::awaitable<cohort::hosts> reach_machines(std::vector<std::string> names) {
    if (!names.empty())
        co_return co_await cohort::reach(cohort::ssh(names));
    if (std::getenv("SLURM_JOB_ID") != nullptr)
        co_return co_await cohort::reach(cohort::slurm());
    // Elsewhere this may be: command("kubectl", "exec", "-i", host, "--").args(agent)
    const auto make = [](const std::string&, const std::vector<std::string>& agent) {
        return cohort::command("env").args(agent);
    };
    co_return co_await cohort::reach(cohort::launcher(make).hosts("alpha", "beta"));
}

std::string place(int index) {
    namespace self = cohort::this_worker;
    return fmt::format("worker {} of {}, number {} of {} on {}", index, self::size(),
                       self::local_index(), self::local_size(), self::host());
}

// The workers are dealt out in blocks. The first hosts have one more where that is not whole.
asio::awaitable<void> where(cohort::hosts machines) {
    auto report = co_await cohort::run(cohort::function<place>(), cohort::options(3).on(machines));
    for (const auto& worker : report.outcomes)
        fmt::print("{}\n", worker.result<std::string>());
}

asio::awaitable<void> lines(cohort::hosts machines) {
    auto group = co_await cohort::spawn(
        cohort::command("sh", "-c", "echo rank $RANK of $WORLD_SIZE meets at $MASTER_ADDR"),
        cohort::options().on(machines).per_host(1).stdout_to(cohort::lines()));
    while (auto line = co_await group.output())
        fmt::print("{}: {}\n", line->host, line->text);
    co_await group.join();
}

void read_shard(int index) {
    if (index == 3)
        throw std::runtime_error("no shard 3");
    ::pause();
}

// The failure of one worker stops the others on all hosts.
asio::awaitable<void> failure(cohort::hosts machines) {
    try {
        co_await cohort::run(cohort::function<read_shard>(), cohort::options(4).on(machines));
    } catch (const cohort::process_raised_exception& e) {
        fmt::print("{} has failed:{}\n", e.failed().host, e.what());
    }
}

void train(int index, int attempt) {
    if (attempt == 0 && index == cohort::this_worker::size() - 1)
        ::kill(::getppid(), SIGKILL);  // the agent of this host, as if the machine had failed
    if (attempt == 0)
        ::pause();
}

// A lost host ends the group. Whether the rest starts again is the program's own decision.
asio::awaitable<void> loss(cohort::hosts machines) {
    for (int attempt = 0; machines.size() > 0; ++attempt) {
        try {
            auto how = cohort::options().on(machines).per_host(2);
            auto report = co_await cohort::run(cohort::function<train>(attempt), how);
            fmt::print("trained by {} workers\n", report.outcomes.size());
            co_return;
        } catch (const cohort::host_lost& e) {
            fmt::print("{}\n", e.what());
        }
        machines = machines.alive_only();
    }
}

asio::awaitable<void> all(std::vector<std::string> names) {
    auto machines = co_await reach_machines(names);
    co_await where(machines);
    co_await lines(machines);
    co_await failure(machines);
    co_await loss(machines);
    co_await machines.leave();
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);  // in an agent and in a worker: never returns
    asio::io_context io;
    asio::co_spawn(io, all({argv + 1, argv + argc}), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}

// Prints (`...` stands for anything):
//   worker 0 of 3, number 0 of 2 on alpha
//   worker 1 of 3, number 1 of 2 on alpha
//   worker 2 of 3, number 0 of 1 on beta
//   alpha: rank 0 of 2 meets at alpha
//   beta: rank 1 of 2 meets at alpha
//   beta has failed:
//
//   -- Process 3 (beta) terminated with the following error:
//   Traceback (most recent call last):
//     File "examples/hosts.cpp", line 60, in read_shard(int)
//   std::runtime_error: no shard 3
//   host beta was lost...
//   trained by 2 workers
