// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstdint>

namespace cohort {

/// What a live worker uses, see group::usage(). If the worker has a cgroup of its own, time and
/// memory are those of all processes in it. Else they are those of the worker's process alone.
struct worker_usage {
    int index = 0;                         ///< the worker's index
    std::chrono::nanoseconds cpu_time{0};  ///< user and system time since its start
    std::uint64_t resident = 0;            ///< bytes of memory that it has now
    int threads = 0;   ///< of its process, or processes and threads in the cgroup
    char state = '?';  ///< of its process: R, S, D, T, t, Z, see /proc/PID/stat of proc(5)

    /// Whether all members are equal.
    friend bool operator==(const worker_usage&, const worker_usage&) = default;
};

}  // namespace cohort
