// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <cohort/exit_status.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/types.h>

namespace cohort::base {

// Reads files of /proc and of cgroups. Not with a standard stream, because that is not
// close-on-exec: a program that another thread executes meanwhile would inherit the descriptor.

/// The beginning of a file, as much as `room` takes; empty when it can't be read.
[[nodiscard]] std::string_view read_start(const char* path, std::span<char> room,
                                          int directory = AT_FDCWD) noexcept;

/// One entry of a file whose entries end with a NUL each; `index` 0 is the first. Empty when it is
/// missing or does not fit into `room`. The entries before it may have any length.
[[nodiscard]] std::string_view read_entry(const char* path, int index,
                                          std::span<char> room) noexcept;

/// The whole file; empty when it can't be read.
[[nodiscard]] std::string read_text(const std::string& path, int directory = AT_FDCWD);

/// Opens cgroup.procs in a cgroup's directory for writing: "0" moves the writer into that cgroup.
/// The descriptor is numbered 3 or higher. See cgroups(7).
[[nodiscard]] unique_fd open_cgroup_procs(int directory, std::error_code& error) noexcept;

/// A close-on-exec pidfd of a process, which may have ended but must not be reaped yet.
[[nodiscard]] unique_fd open_pidfd(pid_t pid, std::error_code& error) noexcept;

/// Signals the one process that the pidfd stands for, never another. ESRCH: that one is reaped.
[[nodiscard]] std::error_code send_signal(int pidfd, int signo) noexcept;

/// Signals the process group whose *leader* the pidfd stands for, also when the leader has ended.
/// EINVAL before Linux 6.9 (tiers::pidfd_group); ESRCH when there is no such group.
[[nodiscard]] std::error_code send_signal_to_group(int pidfd, int signo) noexcept;

enum class reap_result {
    reaped,   // status and usage are filled in, the process is gone
    not_yet,  // the process runs, or a tracer holds the zombie: ask again later
    lost,     // ECHILD: somebody else reaped it, or the host ignores SIGCHLD
    error,    // errno says which
};
/// Reaps the child, if it has ended, in one system call. Never blocks.
/// Finds children with any exit signal: those that failed before exec have none.
[[nodiscard]] reap_result reap(int pidfd, exit_status& status, rusage& usage) noexcept;

enum class child_state { alive, zombie, not_ours };
/// The state of a child now, without reaping it. `zombie`: its pid cannot be reused until reap().
/// `not_ours`: reaped, never a child of this process, or not a pidfd.
[[nodiscard]] child_state state_of_child(int pidfd) noexcept;
/// Whether the child is a zombie. Its pid, which may also be its process group's number, cannot be
/// reused then.
[[nodiscard]] inline bool holds_zombie(int pidfd) noexcept {
    return state_of_child(pidfd) == child_state::zombie;
}

/// Whether SIGSTOP or its like has stopped the child, unless another wait of this process has taken
/// the news, as one with WUNTRACED does.
[[nodiscard]] bool is_stopped(int pidfd) noexcept;

/// Whether `pid` is a child of this process. The child may have ended.
[[nodiscard]] bool is_child(pid_t pid) noexcept;
/// Blocks until a child has ended, and reaps it.
void reap_when_ended(int pidfd) noexcept;
/// Blocks until a child has ended, and reaps it. For a child that is about to end and has no pidfd,
/// because descriptors ran short.
void reap_by_number(pid_t pid) noexcept;

/// The exit status of a process that somebody else reaped. Empty before it is reaped, and always
/// before Linux 6.15.
[[nodiscard]] std::optional<exit_status> stolen_status(int pidfd) noexcept;

/// True when the kernel answers PIDFD_GET_INFO for this pidfd, else errno says why not.
[[nodiscard]] bool knows_pidfd_info(int pidfd) noexcept;

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
