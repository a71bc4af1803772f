// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/make_far_group.hpp"

#include "group/border/create_group.hpp"
#include "hosts/origin/division.hpp"
#include "hosts/origin/far_group.hpp"
#include "hosts/origin/hosts_state.hpp"
#include "hosts/values/refusal.hpp"
#include "output/routes/pattern.hpp"
#include "output/targets/files.hpp"

#include <cohort/host_errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace cohort::multihost {
namespace {

/// Of an agent's message, besides a result and what was captured.
constexpr std::size_t largest_of_texts = std::size_t{64} << 20;
/// More than a machine has memory for, and far below what a sum can hold.
constexpr std::size_t largest_of_results = std::size_t{1} << 48;

struct used_host {
    int place;  // among those that were reached together
    std::string name;
    host_part part;
};

/// The hosts that run workers. These are the first ones, because they get one more.
std::vector<used_host> hosts_for(const detail::hosts_state& hosts, const std::vector<int>& among,
                                 const detail::spawn_plan& plan) {
    const auto& s = plan.settings;
    const auto workers = divide(s.nprocs, among.size());
    const auto at_once = divide(s.at_once, among.size());
    std::vector<used_host> used;
    int first = 0;
    for (std::size_t i = 0; i < among.size() && workers[i] > 0; ++i) {
        const auto place = static_cast<std::size_t>(among[i]);
        used_host one{among[i], hosts.names().at(place), {{first, workers[i]}}};
        if (s.at_once > 0)
            one.part.at_once = std::max(at_once[i], 1);
        first += workers[i];
        used.push_back(std::move(one));
    }
    return used;
}

/// What the workers of each host are told of their place, as torch's are.
void add_environment(std::vector<used_host>& hosts, int port) {
    int number = 0;
    for (auto& host : hosts) {
        const auto add = [&](const char* name, std::string value) {
            host.part.variables.push_back({name, std::move(value)});
        };
        add("GROUP_RANK", std::to_string(number++));
        add("GROUP_WORLD_SIZE", std::to_string(hosts.size()));
        add("MASTER_ADDR", hosts.front().name);
        add("MASTER_PORT", std::to_string(port));
        add("COHORT_HOST", host.name);
    }
}

const used_host& host_of(const std::vector<used_host>& hosts, int index) {
    return *std::ranges::find_if(hosts, [index](const used_host& host) {
        return index < host.part.workers.first + host.part.workers.count;
    });
}

void refuse_lost(const detail::hosts_state& hosts, const std::vector<used_host>& used) {
    for (const auto& host : used)
        if (!hosts.is_alive(host.place)) {
            const auto lost = hosts.lost({host.place});
            throw host_lost(
                "host " + (lost.empty() ? host.name + ": it was left" : lost.front()) +
                    " (nothing was started)",
                host.part.workers.first, 0, nullptr, host.name);
        }
}

/// How much of a stream a worker's outcome may have, head and tail apart.
std::size_t most_captured(const detail::spawn_plan& plan) {
    std::size_t most = 0;
    const auto look = [&](const detail::placement& where) {
        for (const auto& [number, sinks] : where.sinks)
            for (const auto& sink : sinks)
                if (const auto* const kept = std::get_if<detail::capture_sink>(&sink))
                    most = std::max({most, kept->head, kept->tail});
    };
    look(plan.settings.where);
    std::ranges::for_each(plan.placements, look);
    std::ranges::for_each(plan.programs, look, &detail::program::where);
    return most;
}

/// When workers of all hosts are stopped, only the whole group can decide. After a failure a host
/// starts nobody any more, and waits to be told.
void leave_decisions(detail::group_settings& of_part) {
    of_part.notice_period = duration::max();
    of_part.time_limit = std::nullopt;
}

output::route_names names_of(const detail::spawn_plan& plan, const std::vector<used_host>& hosts) {
    auto names = output::names_for(plan.settings.name);
    for (const auto& host : hosts)
        names.hosts.insert(names.hosts.end(), static_cast<std::size_t>(host.part.workers.count),
                           std::make_shared<const std::string>(host.name));
    return names;
}

/// Of what comes over the links.
std::shared_ptr<output::group_streams> prepare_streams(loop::runtime& runtime,
                                                       const detail::spawn_plan& plan,
                                                       const output::route_names& names) {
    auto streams = detail::make_streams(runtime, plan, names, output::routes_of::origin);
    output::base_directories bases(-1);  // no file is opened here
    if (const auto failed = streams->prepare(bases))
        std::rethrow_exception(detail::failure_of(*failed));
    return streams;
}

far_part::settings settings_of(const used_host& host, std::uint32_t group,
                               const detail::spawn_plan& plan) {
    far_part::settings how;
    how.group = group;
    how.part = host.part;
    if (const auto& restarts = plan.settings.restarts)
        how.most_restarts = restarts->within ? std::numeric_limits<int>::max() : restarts->most;
    how.longest_stop = groups::longest_stop(plan.settings);
    // What is left in the cgroup is killed and removed before the last report.
    const auto flushed = detail::time_point() + plan.settings.flush_timeout;
    const auto killed = detail::saturating_add(flushed, plan.settings.kill_timeout);
    how.last_words =
        detail::saturating_add(killed, std::chrono::seconds(1)).time_since_epoch();
    how.ends.host = host.name;
    how.ends.result_limit = plan.settings.result_limit;
    how.ends.capture_limit = most_captured(plan);
    how.largest_message = largest_of_texts + std::min(how.ends.result_limit, largest_of_results) +
                          4 * how.ends.capture_limit;
    return how;
}

}  // namespace

detail::group_ref make_far_group(const detail::hosts_ref& hosts, const std::vector<int>& among,
                                 detail::spawn_plan plan) {
    if (among.empty())
        throw std::invalid_argument("cohort: on: none of the hosts lives");
    auto& services = detail::services_for(plan);
    auto used = hosts_for(*hosts, among, plan);
    refuse_lost(*hosts, used);
    settle_consoles(plan);
    refuse_to_leave(plan, [&](int index) { return host_of(used, index).name; });
    const auto& restarts = plan.settings.restarts;
    if (restarts && restarts->scope == restart_scope::all)
        throw std::invalid_argument(
            "cohort: restart_scope::all: workers on hosts can't start again together");
    (void)output::make_routes(plan, {}, output::routes_of::host);  // refuses what no host can do
    add_environment(used, hosts->port());

    far_group::settings how;
    how.place = std::exchange(plan.settings.machines, nullptr);
    how.hosts_state = hosts;
    for (const auto& host : used)
        how.hosts.push_back(host.name);
    how.host_timeout = hosts->host_timeout();
    const auto names = names_of(plan, used);
    if (auto& logs = plan.settings.logs)
        logs->run_id = output::run_id_of(*logs, names);  // one for all hosts
    auto streams = prepare_streams(services.runtime(), plan, names);
    how.whole = plan.settings;
    leave_decisions(plan.settings);
    how.plan = std::make_shared<const detail::spawn_plan>(std::move(plan));
    const auto shared = how.plan;
    auto made = std::make_shared<far_group>(services, std::move(how), std::move(streams));
    const auto number = hosts->new_group();
    for (const auto& host : used)
        made->add_part(hosts->links().at(static_cast<std::size_t>(host.place)),
                       settings_of(host, number, *shared));
    return made;
}

}  // namespace cohort::multihost
