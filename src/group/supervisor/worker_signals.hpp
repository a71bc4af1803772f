// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "group/lifecycle/verdict.hpp"

#include <cohort/policies.hpp>

#include <optional>

#include <sys/types.h>

namespace cohort::groups {

/// The signals that a group sends to one worker and its process group: how they get there, and
/// which were sent when. Nothing is sent to a worker that has ended. Belongs to the engine's
/// thread.
class worker_signals {
public:
    worker_signals(pid_t pid, base::unique_fd pidfd, process_group group) noexcept;

    pid_t pid() const noexcept { return pid_; }
    int pidfd() const noexcept { return pidfd_.get(); }

    /// Signals the worker and its process group, by the best means that this host has.
    void send(int signo) noexcept;
    /// Sends the stop signal, then SIGCONT, because a stopped process would not notice before. Only
    /// the first call counts, and none after send_kill().
    void send_stop(int signo) noexcept;
    /// Only the first call counts.
    void send_kill() noexcept;
    /// SIGKILL was sent to it before it was known as a worker.
    void note_killed() noexcept;
    /// Sends the worker alone the request for its stacks. @return whether it was sent
    [[nodiscard]] bool request_stacks(int signo) noexcept;

    /// The worker has ended and is not reaped yet: kills the rest of its process group.
    void worker_ended() noexcept;
    /// Whether the rest of its process group has been killed. If not, somebody else was quicker to
    /// reap the worker, and kill_rest_of_group() is to be called.
    bool has_killed_group() const noexcept { return group_killed_; }
    /// After the worker was reaped: whether its process group has members, zombies too. Kills them
    /// once more where that can hit no other group.
    [[nodiscard]] bool has_left_group() const noexcept;
    /// The worker was reaped, and nothing of its process group is looked for any more.
    void close() noexcept { pidfd_.reset(); }

    bool has_ended() const noexcept { return has_ended_; }
    /// Whether it has not ended by now, even if worker_ended() is still to come. Else neither stop
    /// signal nor SIGKILL is sent, because the worker's failure would count as caused by them.
    bool is_alive() const noexcept;
    /// Whether a stop signal would still be sent.
    bool may_stop() const noexcept { return !stop_sent_ && is_alive(); }
    /// From when on a failure of the worker counts as caused by its stop.
    std::optional<groups::time_point> stop_began() const noexcept;
    std::optional<groups::time_point> kill_sent() const noexcept { return kill_sent_; }
    /// Whether SIGKILL was sent for any reason.
    bool has_sent_sigkill() const noexcept { return has_sent_sigkill_; }

private:
    const pid_t pid_;
    base::unique_fd pidfd_;  // empty: see close()
    const process_group group_;
    bool has_ended_ = false;
    bool group_killed_ = false;  // the rest of its process group has been killed
    bool has_sent_sigkill_ = false;
    std::optional<groups::time_point> stacks_requested_;
    std::optional<groups::time_point> stop_sent_;
    std::optional<groups::time_point> kill_sent_;
};

}  // namespace cohort::groups
