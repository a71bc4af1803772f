// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/unique_fd.hpp"

#include <cohort/exit_status.hpp>

#include <optional>
#include <system_error>

#include <sys/resource.h>
#include <sys/types.h>

namespace cohort::base {

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

}  // namespace cohort::base
