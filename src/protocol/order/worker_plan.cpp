// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/worker_plan.hpp"

#include <cstddef>

namespace cohort::protocol {
namespace {

bool is_empty(const detail::placement* where) {
    return where == nullptr || *where == detail::placement();
}

}  // namespace

worker_plan worker_plans::of(int index) {
    const auto at = static_cast<std::size_t>(index);
    const detail::program* command = nullptr;
    if (!plan_.calls_function())
        command = &plan_.programs[plan_.programs.size() == 1 ? 0 : at];
    const auto* const own = plan_.placements.empty() ? nullptr : &plan_.placements[at];
    const auto* const of_command = command != nullptr ? &command->where : nullptr;
    if (is_empty(own) && is_empty(of_command))
        return {kind(), command, own, &plan_.settings.where};
    if (!where_ || command_ != command || own_ != own) {
        where_ = plan_.settings.where;
        for (const auto* over : {own, of_command})
            if (over != nullptr)
                where_ = where_->overridden_by(*over);
        command_ = command;
        own_ = own;
    }
    return {kind(), command, own, &*where_};
}

start_kind worker_plans::kind() const noexcept {
    if (plan_.call)
        return start_kind::forked;
    const bool is_served = plan_.function && plan_.settings.method == start_method::forkserver;
    return is_served ? start_kind::served : start_kind::executed;
}

}  // namespace cohort::protocol
