// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/worker_signals.hpp"

#include "base/sys/processes.hpp"
#include "base/sys/tiers.hpp"
#include "loop/engine/reaper.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include <unistd.h>

namespace cohort::groups {

worker_signals::worker_signals(pid_t pid, base::unique_fd pidfd, process_group group) noexcept
    : pid_(pid), pidfd_(std::move(pidfd)), group_(group) {}

void worker_signals::send(int signo) noexcept {
    if (has_ended_)
        return;
    has_sent_sigkill_ |= signo == SIGKILL;
    if (group_ == process_group::inherit) {
        (void)base::send_signal(pidfd_.get(), signo);
        return;
    }
    // One signal to the group reaches the worker too, unless it has moved to another group. (If
    // somebody has reaped the worker and its pid is reused, getpgid's answer is wrong but harmless:
    // the pidfd still means the worker.)
    const bool leads = getpgid(pid_) == pid_;
    if (!leads || signo == SIGKILL)
        (void)base::send_signal(pidfd_.get(), signo);
    if (base::is_best(&base::tiers::pidfd_group))
        (void)base::send_signal_to_group(pidfd_.get(), signo);
    else if (base::state_of_child(pidfd_.get()) != base::child_state::not_ours)
        kill(-pid_, signo);
    else if (leads)
        (void)base::send_signal(pidfd_.get(), signo);
}

void worker_signals::send_stop(int signo) noexcept {
    if (!may_stop())
        return;
    stop_sent_ = std::chrono::steady_clock::now();
    send(signo);
    send(SIGCONT);
}

void worker_signals::send_kill() noexcept {
    if (kill_sent_ || !is_alive())
        return;
    kill_sent_ = std::chrono::steady_clock::now();
    if (!stop_sent_)
        stop_sent_ = kill_sent_;
    send(SIGKILL);
}

void worker_signals::note_killed() noexcept {
    stop_sent_ = kill_sent_ = std::chrono::steady_clock::now();
    has_sent_sigkill_ = true;
}

bool worker_signals::is_alive() const noexcept {
    return !has_ended_ && !base::holds_zombie(pidfd_.get());
}

bool worker_signals::request_stacks(int signo) noexcept {
    stacks_requested_ = std::chrono::steady_clock::now();
    return !base::send_signal(pidfd_.get(), signo);
}

void worker_signals::worker_ended() noexcept {
    has_ended_ = true;
    if (group_ == process_group::inherit || loop::kill_group(pidfd_.get(), pid_))
        group_killed_ = true;
}

bool worker_signals::has_left_group() const noexcept {
    if (group_ == process_group::inherit)
        return false;
    // EPERM: none of them may be killed. Then it is not for this process to end them.
    if (base::is_best(&base::tiers::pidfd_group))
        return !base::send_signal_to_group(pidfd_.get(), SIGKILL);
    // Nobody gets the number of a group that has members. After that somebody may, so this only
    // asks, and a process of that number is another one, whose group is not the worker's. Nobody
    // has escaped the SIGKILL that was sent before, because the kernel refuses a fork then.
    return kill(-pid_, 0) == 0 && kill(pid_, 0) != 0 && errno == ESRCH;
}

/// The request for stacks comes first if it was sent. It interrupts system calls (EINTR).
std::optional<groups::time_point> worker_signals::stop_began() const noexcept {
    return stacks_requested_ ? stacks_requested_ : stop_sent_;
}

}  // namespace cohort::groups
