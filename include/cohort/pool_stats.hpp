// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/types.h>

namespace cohort {

/// What a pool has now, and how much of what it had until now, see pool::stats. A value.
class pool_stats {
public:
    /// A length of time.
    using duration = std::chrono::steady_clock::duration;

    int size = 0;             ///< live workers, those that start or stop included
    int idle = 0;             ///< workers that have nothing to do
    std::size_t waiting = 0;  ///< calls that wait for a worker, or for room in the queue
    int throttled = 0;        ///< workers that are wanted, and wait for a pause after deaths to end
    std::uint64_t done = 0;   ///< tasks that ended by themselves, whether or not anybody waited
    std::uint64_t failed = 0;    ///< of these, the tasks that threw
    std::uint64_t lost = 0;      ///< tasks whose worker died or was stopped
    std::uint64_t replaced = 0;  ///< workers started in place of others that died or were stopped
    std::uint64_t recycled = 0;  ///< workers replaced after tasks_per_worker, memory_per_worker or
                                 ///< by pool::recycle
    duration waited{};           ///< how long tasks waited for their workers, in sum
    duration longest_wait{};     ///< the longest of these times
    duration ran{};              ///< how long tasks that are done have run, in sum
    duration longest_run{};      ///< the longest of these times

    /// Whether all numbers are equal.
    friend bool operator==(const pool_stats&, const pool_stats&) = default;
};

/// What a worker of a pool does.
enum class worker_state {
    starting,  ///< it is not ready yet: it starts, or runs the initializer
    idle,      ///< it waits for a task
    running,   ///< it runs a task
    stopping,  ///< it is let go or stopped, and not reaped yet
};
/// "starting", "idle", ...: the name of the enumerator.
COHORT_API const char* to_string(worker_state s) noexcept;

/// One worker of a pool, see pool::workers. A value.
class pool_worker {
public:
    int slot = -1;  ///< its place in the pool: this_worker::index()
    pid_t pid = 0;  ///< for logs, never for kill(); 0: it is being started
    worker_state state = worker_state::starting;  ///< what it does
    std::string task;  ///< the name of the function that it runs; empty if it runs none
    std::chrono::steady_clock::time_point since;  ///< since when it is in this state
    std::uint64_t tasks = 0;                      ///< how many tasks it has ended
    std::uint64_t memory = 0;  ///< the bytes that it had added when pool_options::memory_per_worker
        ///< was last looked at; 0: there is no limit, or it was not looked at
};

}  // namespace cohort
