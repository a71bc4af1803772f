// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/starts/cpu_places.hpp"
#include "group/starts/start_report.hpp"
#include "protocol/order/caller.hpp"

#include <cohort/detail/limits.hpp>

#include <optional>
#include <vector>

namespace cohort::groups {

/// Finds out on which CPUs the workers of a group run. Belongs to the starter thread.
class worker_cpus {
public:
    /// @param callers  the CPUs of the caller; borrowed
    /// @param at_once  how many workers run at a time
    worker_cpus(const protocol::cpu_mask& callers, int at_once) noexcept
        : callers_(callers), at_once_(at_once) {}

    /// @param into   is set to the CPUs of worker `index`; stays empty if they are the caller's
    /// @param place  is set to the worker's part of the caller's, if it gets a part
    std::optional<start_failure> find(const detail::worker_limits& limits, int index,
                                      protocol::cpu_mask& into, cpu_places::lease& place);

private:
    const protocol::cpu_mask& callers_;
    const int at_once_;
    std::optional<cpu_places> places_;   // when parts are asked for
    std::vector<protocol::core> cores_;  // of callers_, when they are asked for
};

}  // namespace cohort::groups
