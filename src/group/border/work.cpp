// SPDX-License-Identifier: BSL-1.0
#include "base/sys/tiers.hpp"
#include "base/values/demangle.hpp"

#include <cohort/detail/plan.hpp>
#include <cohort/detail/sink_access.hpp>
#include <cohort/errors.hpp>
#include <cohort/sinks.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include <unistd.h>

#include <utility>

namespace cohort::detail::inline v0_1 {

std::string function_name(const std::type_info& tag) { return function_name(tag.name()); }

std::string function_name(const char* tag) {
    // "cohort::detail::v0_1::function_tag<&train>", or "...<&(train(int, int))>"
    std::string name = base::demangle(tag);
    const auto begin = name.find_first_not_of("&( ", name.find('<') + 1);
    const auto end = name.find_last_not_of("> ");
    if (begin == std::string::npos || end == std::string::npos || end < begin)
        return name;
    name = name.substr(begin, end + 1 - begin);
    if (name.ends_with("))"))
        name.pop_back();
    if (!name.ends_with(')'))
        return name;
    // Without the parameters: back to the bracket that opens them.
    std::size_t at = name.size();
    for (int open = 0; at > 0;) {
        --at;
        open += name[at] == ')' ? 1 : name[at] == '(' ? -1 : 0;
        if (open == 0)
            break;
    }
    return name.substr(0, at);
}

void add_program(spawn_plan& plan, const program& added) { plan.programs.push_back(added); }

spawn_plan plan_of_execution(program what,
                             std::optional<std::chrono::steady_clock::duration> time_limit) {
    spawn_plan plan;
    plan.has_ranks = false;  // a helper command of rank 3 is not rank 0 of anything
    plan.settings.policy = on_failure::keep_going;
    plan.settings.time_limit = time_limit;
    if (time_limit)
        plan.settings.grace_period = std::min(plan.settings.grace_period, *time_limit);
    if (what.where.input && std::holds_alternative<feed_input>(*what.where.input))
        throw std::invalid_argument(
            "cohort: execute gives nobody the group that could fill feed(): use bytes()");
    const auto is_queue = [](const sink& s) {
        return std::holds_alternative<lines_sink>(s) || std::holds_alternative<chunks_sink>(s);
    };
    for (const auto& [stream, sinks] : what.where.sinks)
        if (std::ranges::any_of(sinks, is_queue))
            throw std::invalid_argument(
                "cohort: execute gives nobody the group to read lines() or chunks() from: use "
                "capture()");
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
        if (!what.where.sinks.contains(stream) && !what.where.descriptors.contains(stream))
            what.where.sinks[stream] = {sink_access::data(capture())};
    plan.programs.push_back(std::move(what));
    hold_lent(plan);
    return plan;
}

void hold_lent(spawn_plan& plan) {
    plan.settings.where.hold_lent();
    for (auto& program : plan.programs)
        program.where.hold_lent();
    for (auto& where : plan.placements)
        where.hold_lent();
}

void place_workers(spawn_plan& plan) {
    // The callable is forgotten, because it would end on a thread of the library.
    const auto place = std::exchange(plan.settings.place, nullptr);
    for (int index = 0; place && index < plan.settings.nprocs; ++index)
        plan.placements.push_back((*place)(index));
}

start_method method_for_functions(const group_settings& settings) {
    // Only a program that is executed can be another one, or run on another host.
    const bool is_open = settings.method == start_method::spawn &&
                         !settings.where.limits.executable && !settings.machines;
    if (is_open)
        base::note_reached(base::reached::functions);
    const auto method = is_open ? base::current_tiers().functions.value_or(start_method::spawn)
                                : settings.method;
    if (method == start_method::fork)
        base::note_reached(base::reached::fork);
    if (method == start_method::forkserver)
        base::note_reached(base::reached::forkserver);
    return method;
}

void require_fork(const group_settings& settings) {
    if (settings.method != start_method::fork)
        throw spawn_error(std::make_error_code(std::errc::not_supported),
                          "a closure can be started only with start_method::fork", -1,
                          "start_method");
}

}  // namespace cohort::detail::inline v0_1
