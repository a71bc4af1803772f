// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/worker_plan.hpp"

#include <cstddef>

namespace cohort::protocol {

worker_plan worker_plans::of(int index) {
    if (plan_.calls_function())
        return {kind(), nullptr, &plan_.settings.where};
    const bool is_shared = plan_.programs.size() == 1;
    const auto& command = plan_.programs[is_shared ? 0 : static_cast<std::size_t>(index)];
    if (command.where == detail::placement())
        return {kind(), &command, &plan_.settings.where};
    if (command_ != &command) {
        where_ = plan_.settings.where.overridden_by(command.where);
        command_ = &command;
    }
    return {kind(), &command, &*where_};
}

start_kind worker_plans::kind() const noexcept {
    if (plan_.call)
        return start_kind::forked;
    const bool is_served = plan_.function && plan_.settings.method == start_method::forkserver;
    return is_served ? start_kind::served : start_kind::executed;
}

}  // namespace cohort::protocol
