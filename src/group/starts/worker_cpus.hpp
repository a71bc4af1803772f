// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/starts/start_report.hpp"
#include "protocol/order/cpu_parts.hpp"

#include <cohort/detail/limits.hpp>

#include <optional>
#include <vector>

namespace cohort::groups {

/// Finds out on which CPUs the workers of a group run. Belongs to the starter thread.
class worker_cpus {
public:
    /// @param callers  the CPUs of the caller; borrowed
    /// @param workers  how many the group has
    worker_cpus(const protocol::cpu_mask& callers, int workers) noexcept
        : callers_(callers), workers_(workers) {}

    /// @param into  is set to the CPUs of worker `index`; stays empty if they are the caller's
    std::optional<start_failure> find(const detail::worker_limits& limits, int index,
                                      protocol::cpu_mask& into);

private:
    const protocol::cpu_mask& callers_;
    const int workers_;
    std::vector<protocol::core> cores_;  // of callers_, when they are asked for
};

}  // namespace cohort::groups
