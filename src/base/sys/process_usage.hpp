// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include <sys/types.h>

namespace cohort::base {

/// What a process uses, as /proc/PID/stat tells it.
struct process_usage {
    std::uint64_t ticks = 0;  // of CPU time, user and system
    std::uint64_t pages = 0;  // resident
    int threads = 0;
    char state = '?';
    bool is_exiting = false;  // it runs none of its own code any more

    std::chrono::nanoseconds cpu_time() const noexcept;
    std::uint64_t resident() const noexcept;  // in bytes

    bool operator==(const process_usage&) const = default;
};

/// Reads a /proc/PID/stat. The name in it may contain anything. Empty: it is not whole.
std::optional<process_usage> parse_stat(std::string_view text) noexcept;

/// That of the process for which the pidfd stands. Where its first thread has ended and another one
/// lives, the state and the memory are those of that one. Empty: it has been reaped, or its file
/// can't be read, and errno says why. May hang with /proc.
/// @param pid  its number, which another process may have by now
std::optional<process_usage> usage_of(pid_t pid, int pidfd) noexcept;

/// Whether the process of this number is exiting, has exited or can't be looked at. May hang with
/// /proc.
bool is_exiting(pid_t pid) noexcept;

/// Whether the process for which the pidfd stands is seen to be exiting. False where it can't be
/// looked at.
bool is_seen_exiting(pid_t pid, int pidfd) noexcept;

}  // namespace cohort::base
