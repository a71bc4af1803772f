// SPDX-License-Identifier: BSL-1.0
// The making of groups: checks the caller, and reads what the workers inherit from it.
#include "group/border/create_group.hpp"

#include "base/sys/credentials.hpp"
#include "group/border/impossible.hpp"
#include "group/state/local_group.hpp"
#include "output/routes/pattern.hpp"
#include "output/targets/call_threads.hpp"
#include "protocol/registry/mark.hpp"
#include "protocol/registry/registry.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/errors.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

namespace cohort::detail::inline v0_1 {

namespace {

/// Whether a worker would execute this program for a function.
bool executes_program_again(const spawn_plan& plan) {
    const auto is_here = [](const placement& where) { return !where.limits.executable; };
    return plan.function != nullptr && is_here(plan.settings.where) &&
           (plan.placements.empty() || std::ranges::any_of(plan.placements, is_here));
}

/// @throws spawn_error, std::logic_error
void require_worker_main(const spawn_plan& plan) {
    if (protocol::is_worker_process() && !protocol::worker_main_reached())
        throw spawn_error(std::make_error_code(std::errc::operation_not_permitted),
                          "worker_main was not reached in this worker: call it first in main", -1,
                          "worker_main");
    // Each worker would be a second copy of the whole program, which may never end.
    if (executes_program_again(plan) && !protocol::worker_main_called())
        throw std::logic_error(
            "cohort: function workers execute this program again, but it has not called "
            "worker_main, which runs them. Put this line first in main(int argc, char** argv):\n"
            "    cohort::worker_main(argc, argv);");
}

groups::services& services_for_spawn() {
    if (const auto* order = protocol::current_order(); order && order->daemonic)
        throw spawn_error(std::make_error_code(std::errc::operation_not_permitted),
                          "daemonic processes are not allowed to have children", -1, "daemon");
    try {
        return groups::services::of(loop::runtime::for_spawn());
    } catch (const std::system_error& e) {
        throw spawn_error(e.code(), "starting the library's threads", -1, "threads");
    }
}

/// The name of a group that the user has not named: that of its program.
std::string default_name(const spawn_plan& plan) {
    if (plan.calls_function() || plan.programs.empty())
        return program_invocation_short_name;
    const std::string& program = plan.programs.front().argv.front();
    return program.substr(program.rfind('/') + 1);
}

/// Whether a path or a tag of the group can be a pattern.
bool has_patterns(const spawn_plan& plan) {
    const auto can_be = [](const sink& s) {
        return std::holds_alternative<file_sink>(s) || std::holds_alternative<console_sink>(s);
    };
    const auto has_one = [&](const placement& where) {
        return std::ranges::any_of(where.sinks, [&](const auto& stream) {
            return std::ranges::any_of(stream.second, can_be);
        });
    };
    return plan.settings.logs || has_one(plan.settings.where) ||
           std::ranges::any_of(plan.placements, has_one) ||
           std::ranges::any_of(plan.programs, has_one, &program::where);
}

/// What the paths and tags of the group name.
output::route_names names_of(const spawn_plan& plan, output::routes_of machine) {
    // Each name takes a system call, which a short command would feel. At a host the tag of what is
    // inherited is a pattern.
    if (!has_patterns(plan) && machine != output::routes_of::host)
        return {};
    auto names = output::names_for(plan.settings.name);
    if (machine == output::routes_of::host)
        for (const auto& [name, value] : plan.host_variables)
            if (name == "COHORT_HOST" && value)
                names.host = *value;  // as the whole group calls this machine
    return names;
}

/// Destroys the filters of console().only() here, if they are not used elsewhere. The rest of the
/// plan ends on a starter thread, where no code of the user's may run.
void forget_sinks(spawn_plan& plan) {
    plan.settings.where.sinks.clear();
    for (auto& where : plan.placements)
        where.sinks.clear();
    for (auto& each : plan.programs)
        each.where.sinks.clear();
}

group_ref create_group_of(spawn_plan plan, output::routes_of machine) {
    auto& services = services_for(plan);
    const auto names = names_of(plan, machine);
    const auto from = caller_of(services);
    return make_group(services, std::move(plan), names, from, machine);
}

}  // namespace

std::shared_ptr<output::group_streams> make_streams(loop::runtime& runtime, const spawn_plan& plan,
                                                    const output::route_names& names,
                                                    output::routes_of machine) {
    const auto& s = plan.settings;
    auto routes = output::make_routes(plan, names, machine);
    try {
        if (routes.has_pipes)
            output::start_output(runtime);
    } catch (const std::system_error& e) {
        throw spawn_error(e.code(), "starting the library's threads", -1, "threads");
    }
    const char* const no_color = std::getenv("NO_COLOR");
    return std::make_shared<output::group_streams>(
        runtime, std::move(routes),
        output::group_streams::settings{s.flush_timeout, s.pipe_size, s.parent_death_signal,
                                        no_color == nullptr || *no_color == '\0',
                                        s.restarts.has_value()});
}

groups::services& services_for(spawn_plan& plan) {
    require_worker_main(plan);
    auto& services = services_for_spawn();
    refuse_at_exit(services.runtime());
    refuse_impossible(plan);
    if (plan.settings.name.empty())
        plan.settings.name = default_name(plan);
    return services;
}

protocol::caller_ref caller_of(groups::services& services) {
    const auto& starter = services.runtime().starter();
    const bool shares_files = base::shares_files_with(starter.number);
    auto from = protocol::capture_caller(services.runtime().pid());
    refuse_confined(starter, shares_files);
    return from;
}

group_ref make_group(groups::services& services, spawn_plan plan, const output::route_names& names,
                     protocol::caller_ref from, output::routes_of machine) {
    auto streams = make_streams(services.runtime(), plan, names, machine);
    forget_sinks(plan);
    return std::make_shared<local_group>(services, std::move(plan), std::move(from),
                                         std::move(streams));
}

group_ref create_group(spawn_plan plan) {
    if (const auto machines = plan.settings.machines)
        return machines->make_group(std::move(plan));
    return create_group_of(std::move(plan), output::routes_of::program);
}

group_ref create_group_at_host(spawn_plan plan) {
    return create_group_of(std::move(plan), output::routes_of::host);
}

std::shared_ptr<output::group_streams> streams_of(const group_ref& group) {
    return group->streams().shared_from_this();
}

}  // namespace cohort::detail::inline v0_1
