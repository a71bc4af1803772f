// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "group/lifecycle/verdict.hpp"
#include "group/starts/start_report.hpp"
#include "group/supervisor/own_stop.hpp"
#include "group/supervisor/printed_end.hpp"
#include "group/supervisor/record_reader.hpp"
#include "group/supervisor/stop_report.hpp"
#include "group/supervisor/usage_looks.hpp"
#include "group/supervisor/worker_signals.hpp"
#include "loop/runtime/runtime.hpp"
#include "output/streams/group_streams.hpp"
#include "start/cgroup/worker_cgroup.hpp"

#include <cohort/detail/plan.hpp>
#include <cohort/outcome.hpp>

#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include <sys/resource.h>
#include <sys/types.h>

namespace cohort::groups {

/// How one worker ended: what the user sees of it, and how the lifecycle judged it.
struct worker_end {
    cohort::outcome outcome;
    groups::verdict verdict;
};

/// One worker from its start to its outcome. Belongs to the engine's thread.
class worker_process : public std::enable_shared_from_this<worker_process> {
public:
    /// @param started  what the worker has is taken from this report
    /// @param streams  those of its group
    /// @param work     what it does, for its outcome
    worker_process(loop::runtime& runtime, start_report& started,
                   std::shared_ptr<output::group_streams> streams,
                   std::shared_ptr<const std::string> work,
                   std::shared_ptr<const detail::group_settings> settings);

    int index() const noexcept { return index_; }
    pid_t pid() const noexcept { return signals_.pid(); }

    /// What is called when the worker ends, in this order.
    struct end_events {
        base::callback<void(const exit_status&)> ended;  // reaped, with its process group killed
        base::callback<void(worker_end)> judged;         // its record is read
        // Nothing in its process group lives, or kill_timeout is over; its streams have ended.
        base::callback<void(output::stream_end)> printed;
        base::callback<void()> left_nothing;  // its streams are over; later if a target hung
        /// In place of these: it has not ended within kill_timeout after its own SIGKILL. The
        /// callee calls abandon().
        base::callback<void()> hangs;
    };
    /// Waits for the worker's end, at most for its own time limit. Judges it without a wait for
    /// what it has printed.
    void await_end(end_events events);

    /// For a look at what it uses. Empty: it has ended, or `error` says why there is no descriptor.
    std::optional<looked_at> to_be_looked_at(std::error_code& error) const;

    /// See worker_signals.
    void signal(int signo) noexcept { signals_.send(signo); }
    /// See worker_signals::send_stop(). With stack_on_stop the worker first reports its stacks.
    void send_stop_signal(int signo);
    void send_kill() noexcept;
    /// What is called when it has written more to a stream than it may: stops it, alone, unless it
    /// is being stopped.
    output::group_streams::limit_reached on_output_limit();
    /// Stops the worker, alone, unless it is being stopped, so that it can start again.
    void stop_to_restart();
    /// Notes whether it is exiting by now. Its group calls it once, see worker_facts.
    void look_whether_it_ends() noexcept;
    /// It has started after that look.
    void note_late_start() noexcept { facts_.exiting_at_look = false; }
    /// The worker is stopped because of a limit. If it has not ended yet, this is its failure.
    void note_cut_short(groups::cut_short why);

    /// Gives the worker up as unkillable before `ended` is called: reads what its record has now
    /// and calls `judged`, but none of the others. A later end is only reaped.
    void abandon();

private:
    bool has_entered() const noexcept;
    void end_stop_report() noexcept;
    using cut_reason = base::callback<groups::cut_short()>;
    void stop_alone(groups::time_point when, cut_reason why);
    void take_own_step(own_stop::step next, const cut_reason& why);
    void reaped(const loop::reaped& end);
    void ended(const loop::reaped& end);
    void read_what_is_left();
    void read(record_contents contents);
    void report(record_contents contents);
    worker_end judge(record_contents contents);

    loop::runtime& runtime_;
    std::shared_ptr<const detail::group_settings> settings_;
    record_kind kind_;
    int index_;
    worker_signals signals_;
    base::unique_fd record_;
    std::shared_ptr<const start::worker_cgroup> cgroup_;
    std::shared_ptr<const std::string> work_;
    const std::shared_ptr<stop_report> stop_report_;  // null: not asked for
    const std::shared_ptr<printed_end> printed_end_;
    groups::worker_facts facts_;  // those that are known by now
    rusage usage_{};
    own_stop own_stop_;
    end_events events_;
};

}  // namespace cohort::groups
