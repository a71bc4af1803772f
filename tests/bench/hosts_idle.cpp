// SPDX-License-Identifier: BSL-1.0
// Measures what hosts cost that have nothing to do: how often threads of this process and of the
// agents wake, and their CPU time.
#include "asio_ticker.hpp"
#include "local_hosts.hpp"
#include "parent.hpp"
#include "sections.hpp"
#include "used.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace bench {
namespace {

int parent_of_this(int) { return ::getppid(); }

/// A worker's parent is its agent.
asio::awaitable<void> reach_and_run(int count, cohort::hosts& machines, std::vector<int>& agents) {
    machines = co_await cohort::reach(local_hosts(count));
    const auto how =
        cohort::options().on(machines).per_host(1).start_method(cohort::start_method::spawn);
    const auto report = co_await cohort::run(cohort::function<parent_of_this>(), how);
    for (const auto& worker : report.outcomes)
        agents.push_back(worker.result<int>());
}

asio::awaitable<void> let_go(cohort::hosts machines) { co_await machines.leave(); }

used used_by(const std::vector<int>& processes) {
    used sum;
    for (const int process : processes)
        sum += used::now(std::to_string(process));
    return sum;
}

}  // namespace

void hosts_idle(const arguments& words) {
    constexpr std::chrono::seconds until_it_is_idle{3};  // some threads end a second after a start
    raise_descriptor_limit();
    const std::chrono::milliseconds idle(words.number("idle_ms"));
    cohort::hosts machines;
    std::vector<int> agents;
    run_beside(nullptr, reach_and_run(words.number("hosts"), machines, agents));
    std::this_thread::sleep_for(until_it_is_idle);
    const used before = used::now(), agents_before = used_by(agents);
    std::this_thread::sleep_for(idle);
    const used after = used::now(), agents_after = used_by(agents);
    run_beside(nullptr, let_go(std::move(machines)));
    const auto part = [&](double ms) { return ms / static_cast<double>(idle.count()); };
    fmt::print("{{\"origin_wakes\": {}, \"origin_cpu\": {}, \"agents_wakes\": {}, "
               "\"agents_cpu\": {}}}\n",
               after.wakes - before.wakes, part(after.cpu_ms - before.cpu_ms),
               agents_after.wakes - agents_before.wakes,
               part(agents_after.cpu_ms - agents_before.cpu_ms));
}

}  // namespace bench
