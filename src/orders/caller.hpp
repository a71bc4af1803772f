// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "orders/environment.hpp"
#include "sys/unique_fd.hpp"

#include <cstddef>
#include <vector>

#include <sched.h>
#include <sys/types.h>

namespace cohort::orders {

/// What workers inherit from the thread that asked for them, read in the initiating call: the start
/// itself happens on another thread and later.
struct caller {
    pid_t pid = 0;
    orders::environment environment;
    sys::unique_fd directory;  // O_PATH; empty when it can't be had: the process' own then
    std::vector<cpu_set_t>
        affinity;  // one mask, as long as this kernel's; empty when it can't be had

    std::size_t affinity_size() const noexcept { return affinity.size() * sizeof(cpu_set_t); }
};

/// @throws spawn_error  no descriptor is left
caller capture_caller(pid_t pid);

}  // namespace cohort::orders
