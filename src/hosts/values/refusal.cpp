// SPDX-License-Identifier: BSL-1.0
#include "hosts/values/refusal.hpp"

#include "protocol/order/worker_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

namespace cohort::multihost {
namespace {

/// What all workers have in common that can't leave; empty: nothing.
std::string held_back(const detail::spawn_plan& plan) {
    if (plan.call)
        return plan.function == nullptr && plan.work == "closure"
                   ? "a closure"
                   : "a function that is started by start_method::fork";
    if (!plan.attachments.empty())
        return "a shared array, queue, event, barrier or mutex";
    if (plan.settings.place)
        return "a callable that makes the settings of workers";
    return "";
}

/// What a worker's settings have that can't leave; empty: nothing.
std::string held_back(const detail::placement& where) {
    if (!where.descriptors.empty())
        return fmt::format("descriptor {}, given by fd(),", where.descriptors.begin()->first);
    if (!where.shared.empty())
        return fmt::format("what share(\"{}\") gives", where.shared.begin()->first);
    if (where.input && std::holds_alternative<detail::inherit_input>(*where.input))
        return "standard input, given by inherit(),";
    return "";
}

/// Puts what the callables say of the indices from `first` to `end` in their place.
void settle(detail::placement& where, int first, int end) {
    for (auto& [number, sinks] : where.sinks)
        for (auto& sink : sinks) {
            auto* const console = std::get_if<detail::console_sink>(&sink);
            if (console == nullptr || !console->filter)
                continue;
            const auto filter = std::exchange(console->filter, nullptr);
            std::set<int> shown;
            for (int index = first; index < end; ++index)
                if ((!console->only || console->only->contains(index)) && (*filter)(index))
                    shown.insert(index);
            console->only = std::move(shown);
        }
}

}  // namespace

void refuse_to_leave(const detail::spawn_plan& plan,
                     const std::function<std::string(int index)>& host) {
    const auto in_all = held_back(plan);
    protocol::worker_plans workers(plan);
    for (int index = 0; index < plan.settings.nprocs; ++index) {
        const auto what = in_all.empty() ? held_back(*workers.of(index).where) : in_all;
        if (!what.empty())
            throw std::invalid_argument(fmt::format(
                "worker {} runs on {}: {} does not leave its machine", index, host(index), what));
    }
}

void settle_consoles(detail::spawn_plan& plan) {
    settle(plan.settings.where, 0, plan.settings.nprocs);
    // One of several is for one worker.
    const bool is_common = plan.programs.size() == 1;
    int index = 0;
    for (auto& program : plan.programs) {
        settle(program.where, index, is_common ? plan.settings.nprocs : index + 1);
        ++index;
    }
    index = 0;
    for (auto& where : plan.placements) {
        settle(where, index, index + 1);
        ++index;
    }
}

}  // namespace cohort::multihost
