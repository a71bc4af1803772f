// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace cohort::start {

/// What the processes in a cgroup use, as far as it has the controllers.
struct cgroup_usage {
    std::optional<std::chrono::nanoseconds> cpu_time;
    std::optional<std::uint64_t> memory;  // in bytes
    std::optional<int> tasks;             // processes and threads
};

/// @param directory  the open directory of the cgroup
cgroup_usage usage_of_cgroup(int directory);

}  // namespace cohort::start
