// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/unique_fd.hpp"

#include <cohort/exit_status.hpp>

#include <optional>
#include <system_error>

#include <sys/resource.h>
#include <sys/types.h>

namespace cohort::sys {

/// A close-on-exec pidfd of a process, which may have ended but must not be reaped yet.
[[nodiscard]] unique_fd open_pidfd(pid_t pid, std::error_code& error) noexcept;

/// Signals the one process that the pidfd stands for, never another. ESRCH: it is reaped.
[[nodiscard]] std::error_code send_signal(int pidfd, int signo) noexcept;

/// Signals the process group whose *leader* the pidfd stands for, also when the leader has ended.
/// EINVAL before Linux 6.9 (tiers::pidfd_group); ESRCH when there is no such group.
[[nodiscard]] std::error_code send_signal_to_group(int pidfd, int signo) noexcept;

enum class reap_result {
    reaped,   // status and usage are filled in, the process is gone
    not_yet,  // it runs, or a tracer holds the zombie: ask again later
    lost,     // ECHILD: somebody else reaped it, or the host ignores SIGCHLD
    error,    // errno says
};
/// Reaps the child, if it has ended, in one system call. Never blocks.
/// Finds children with any exit signal: those that failed before exec have none.
[[nodiscard]] reap_result reap(int pidfd, exit_status& status, rusage& usage) noexcept;

enum class child_state { alive, zombie, not_ours };
/// What the child is now, without reaping it. `zombie`: we hold its pid, so that it cannot be
/// reused until reap(). `not_ours`: reaped, never a child of this process, or not a pidfd.
[[nodiscard]] child_state state_of_child(int pidfd) noexcept;
/// The same question as the sweep of a process group asks it.
[[nodiscard]] inline bool holds_zombie(int pidfd) noexcept {
    return state_of_child(pidfd) == child_state::zombie;
}

/// Whether the number is that of a child of this process, which may have ended.
[[nodiscard]] bool is_child(pid_t pid) noexcept;
/// Blocks until a child has ended, and reaps it.
void reap_when_ended(int pidfd) noexcept;
/// Reaps a child for which there is no pidfd, for want of descriptors, and which is about to end.
void reap_by_number(pid_t pid) noexcept;

/// How a process ended that somebody else reaped; empty before that, and before Linux 6.15.
[[nodiscard]] std::optional<exit_status> stolen_status(int pidfd) noexcept;

/// True when the kernel answers PIDFD_GET_INFO for this pidfd, else errno says why not.
[[nodiscard]] bool knows_pidfd_info(int pidfd) noexcept;

}  // namespace cohort::sys
