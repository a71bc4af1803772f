// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>

#include <chrono>
#include <optional>
#include <vector>

namespace cohort::groups {

using clock = std::chrono::steady_clock;
using time_point = clock::time_point;
using duration = clock::duration;

/// In the order of a group's life: it never returns to an earlier state.
enum class state { starting, running, noticing, stopping, killing, ended };

/// What happens to a group.
enum class event {
    worker_started,
    start_finished,  // all workers are started, or hold_start was obeyed: no more will be
    start_failed,    // a worker could not be started, and no more will be: SIGKILL at once
    worker_ended_well,
    worker_failed,       // a worker ended with a failure, victims included
    worker_restarts,     // a worker ended, and waits for another start
    worker_not_started,  // a worker that waits could not be started: that is its failure
    worker_dropped,      // a worker that waits will not be started any more
    stop_asked,          // stop, drop, cancel, end of the program
    deadline,  // only time has passed: a step is over, or the group's time limit is reached
    failed_elsewhere,  // a worker of another part of the group has failed, or one whose end is
                       // told later
};

/// What the group must now do, in this order when there are several. `send_*` go to every live
/// worker that has not had that signal yet.
enum class action {
    hold_start,  // start no further worker; answer with start_finished if the start is not over,
                 // and with worker_dropped for each worker that waits
    send_stop_signal,  // the stop signal, then SIGCONT
    send_kill,         // SIGKILL; also to a start that is still in flight
    give_up,           // every live worker is unkillable; abandon a start still in flight
    report_end,        // the last worker has ended; comes exactly once, after all other actions
};

struct rules {
    duration notice_period{0};
    duration grace_period{0};
    duration kill_timeout{0};
    on_failure policy = on_failure::stop_all;
    std::optional<duration> time_limit = {};  // of the whole group
};

/// How long the steps of a stop may last at most.
struct step_spans {
    duration notice_period = duration::max();
    duration grace_period = duration::max();
    duration kill_timeout = duration::max();
};

/// The life of one group as a table: no clock, no system calls, no Asio. `now` is a parameter.
///
/// It counts workers without knowing them. Its user must keep these rules:
///
/// - Exactly one start_finished or start_failed ends the start; no worker_started follows it. The
///   group does not end before that, so that no worker is started into a group that is gone.
/// - A worker_started after the end of the start is one that has waited.
/// - No worker_restarts where may_start() says no: that worker has ended for good.
/// - After hold_start, a start in flight ends as worker_started and then start_finished, or as
///   start_failed. After send_kill that start is killed too. After give_up it must be abandoned
///   with start_failed at once (ETIMEDOUT), because no deadline is left and the group waits for
///   this answer alone. A worker that the start still makes before gets the last step anew.
/// - After give_up the ends of abandoned workers are not reported to the machine.
/// - Only event::deadline acts on a deadline. Of events seen at the same time it is passed in last,
///   because an exit seen together with the deadline was in time.
class machine {
public:
    /// @param waiting  how many workers are to be started when the start is over
    explicit machine(rules r, int waiting = 0) noexcept;

    /// The group's time begins: its time limit counts from now. Before the first event.
    void begin(time_point now) noexcept;

    /// Takes in one event. Impossible events (the end of a worker when none is alive, a second
    /// start_finished, anything after the end) change nothing.
    /// @param now  a step lasts from the `now` of the call that entered it. A signal that goes out
    ///             late therefore does not shorten the time that workers have to obey.
    /// @return the actions, in the order in which they must be done.
    std::vector<action> on(event e, time_point now);

    /// From now on no step lasts longer than `longest` says, also the current one.
    void shorten(const step_spans& longest, time_point now) noexcept;

    state current() const noexcept { return state_; }
    /// When on(event::deadline) must be called; a call before that changes nothing.
    /// It never moves later within a step. time_point::max(): the step is too long to add to `now`.
    std::optional<time_point> deadline() const noexcept;
    /// Workers that have started, have not ended and were not given up.
    int live() const noexcept { return live_; }
    /// Workers that are to be started when the start is over, or are just being started then.
    int waiting() const noexcept { return waiting_; }
    bool start_is_over() const noexcept { return !starting_; }
    /// Whether workers may still be started: nothing has begun to stop the group.
    bool may_start() const noexcept { return state_ < state::noticing; }
    /// Whether a stop was asked for before the end, even if the group was already stopping for
    /// another reason.
    bool stop_was_asked() const noexcept { return stop_asked_; }
    /// Whether the time limit was reached before the workers were told to stop for another reason.
    bool time_is_up() const noexcept { return time_is_up_; }
    /// Whether the group is stopped because of its time limit. If a failure came before, the group
    /// was about to be stopped because of that.
    bool timed_out() const noexcept { return timed_out_; }

private:
    struct table;

    bool is_limit_due(event e, time_point now) const noexcept;

    rules rules_;
    state state_ = state::starting;
    std::optional<time_point> deadline_;  // of the step
    std::optional<time_point> limit_;     // of the group
    int live_ = 0;
    int waiting_;
    bool starting_ = true;
    bool held_ = false;
    bool failure_noted_ = false;
    bool stop_asked_ = false;
    bool time_is_up_ = false;
    bool timed_out_ = false;
};

const char* to_string(state s) noexcept;
const char* to_string(event e) noexcept;
const char* to_string(action a) noexcept;

}  // namespace cohort::groups
