// SPDX-License-Identifier: BSL-1.0
#include "hosts/values/plan_bytes.hpp"

#include "hosts/values/plan_parts.hpp"
#include "protocol/registry/registry.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace cohort::multihost {
namespace {

/// Changes the indices of console().only() to those at the host.
void number_consoles(detail::placement& where, worker_range workers) {
    for (auto& [number, sinks] : where.sinks)
        for (auto& sink : sinks) {
            auto* const console = std::get_if<detail::console_sink>(&sink);
            if (console == nullptr || !console->only)
                continue;
            std::set<int> here;
            for (const int index : *console->only)
                if (index >= workers.first && index - workers.first < workers.count)
                    here.insert(index - workers.first);
            console->only = std::move(here);
        }
}

/// Those elements that are for the workers. One alone is for all.
template <class T>
std::vector<T> slice(const std::vector<T>& all, worker_range workers) {
    if (all.size() <= 1)
        return all;
    const auto first = all.begin() + workers.first;
    return {first, first + workers.count};
}

detail::spawn_plan part_of(const detail::spawn_plan& whole, const host_part& from) {
    const auto workers = from.workers;
    detail::spawn_plan part;
    part.settings = whole.settings;
    part.settings.nprocs = workers.count;
    part.settings.at_once = from.at_once.value_or(whole.settings.at_once);
    part.host_variables = from.variables;
    part.programs = slice(whole.programs, workers);
    part.placements = slice(whole.placements, workers);
    number_consoles(part.settings.where, workers);
    for (auto& program : part.programs)
        number_consoles(program.where, workers);
    for (auto& where : part.placements)
        number_consoles(where, workers);
    return part;
}

template <wire W>
void walk(W& w, typename W::template of<protocol::function_key>& key) {
    auto& [offset, module_length, module] = key;
    w.number(offset);
    w.number(module_length, 1, static_cast<std::uint8_t>(module.size()));
    for (auto& byte : module)
        w.number(byte);
}

void walk(wire_writer& w, const detail::function_node* const& function) {
    walk(w, protocol::key_of(*function));
}

void walk(wire_reader& w, const detail::function_node*& function) {
    protocol::function_key key;
    walk(w, key);
    function = protocol::find(key);
}

/// Of one function the arguments may be long, so they are written from where they are.
template <wire W>
void walk(W& w, typename W::template of<detail::spawn_plan>& plan,
          typename W::template of<std::vector<std::byte>>& with) {
    auto& [settings, function, arguments, call, programs, work, placements, attachments,
           results_carry, told, part, host_variables, has_ranks, has_keeper] = plan;
    (void)arguments, (void)has_ranks, (void)has_keeper;
    walk(w, *part);
    walk(w, settings);
    w.text(work);
    bool calls = function != nullptr;
    w.flag(calls);
    if (calls) {
        walk(w, function);
        w.bytes(with);
    }
    w.list(programs, unlimited, [&](auto& one) { walk(w, one); });
    w.list(placements, unlimited, [&](auto& one) { walk(w, one); });
    w.flag(results_carry);
    w.maybe(told, [&](auto& set) { walk(w, set); });
    w.list(host_variables, unlimited, [&](auto& one) { walk(w, one); });
    if (call || !attachments.empty())  // refuse_to_leave() has refused them
        throw std::logic_error("a callable or a descriptor does not leave its machine");
    if constexpr (W::reads)
        if (calls && function == nullptr)
            throw unreadable(fmt::format(
                "the function {} is not in this program: it may be in a library that is opened "
                "with dlopen, or the program was replaced after it had started",
                work));
}

/// Whether each worker has its work and its settings.
void require_whole(const detail::spawn_plan& plan) {
    const auto workers = static_cast<std::size_t>(plan.settings.nprocs);
    const auto programs = plan.programs.size();
    if (plan.function != nullptr ? programs != 0 : programs != 1 && programs != workers)
        throw unreadable(fmt::format("{} commands for {} workers", programs, workers));
    if (!plan.placements.empty() && plan.placements.size() != workers)
        throw unreadable(
            fmt::format("settings of {} workers for {}", plan.placements.size(), workers));
    const auto [first, size] = *plan.part;
    if (first > size - plan.settings.nprocs)
        throw unreadable(
            fmt::format("{} workers from {} on are more than {}", workers, first, size));
}

}  // namespace

std::vector<std::byte> write_plan(const detail::spawn_plan& plan, const host_part& from) {
    wire_writer w;
    auto part = part_of(plan, from);
    part.part = detail::numbering{from.workers.first, plan.settings.nprocs};
    part.function = plan.function;
    part.call = plan.call;
    part.work = plan.work;
    part.attachments = plan.attachments;
    part.results_carry = plan.results_carry;
    part.told = plan.told;
    walk(w, part, plan.arguments);
    return w.take();
}

read_value<detail::spawn_plan> read_plan(std::span<const std::byte> bytes) noexcept {
    return read_whole<detail::spawn_plan>("a plan", wire_reader(bytes),
                                          [](wire_reader& w, detail::spawn_plan& plan) {
                                              plan.part.emplace();
                                              walk(w, plan, plan.arguments);
                                              require_whole(plan);
                                          });
}

}  // namespace cohort::multihost
