// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>

#include <chrono>
#include <optional>
#include <vector>

namespace cohort::lifecycle {

using clock = std::chrono::steady_clock;
using time_point = clock::time_point;
using duration = clock::duration;

/// In the order of a life: a group never goes back.
enum class state { starting, running, noticing, stopping, killing, ended };

/// What happens to a group.
enum class event {
    worker_started,
    start_finished,  // no further worker will be started (all are, or hold_start was obeyed)
    start_failed,    // a worker could not be started; no further one will be
    worker_ended_well,
    worker_failed,  // victims too: they have ended
    stop_asked,     // stop, drop, cancel, end of the program
    deadline,       // nothing but time has passed
};

/// What the group must now do, in this order when there are several. `send_*` go to every live
/// worker that has not had that signal yet.
enum class action {
    hold_start,        // start no further worker; answer with start_finished
    send_stop_signal,  // the stop signal, then SIGCONT
    send_kill,         // SIGKILL; also to a start that is still in flight
    give_up,           // every live worker is unkillable; abandon a start still in flight
    report_end,        // the last one has ended: comes exactly once, as the last of all
};

struct rules {
    duration notice_period{0};
    duration grace_period{0};
    duration kill_timeout{0};
    on_failure policy = on_failure::stop_all;
};

/// The life of one group as a table: no clock, no system calls, no Asio. `now` is a parameter.
///
/// It counts workers and does not know them. What its user owes it:
///
/// - The start is over with *one* start_finished or start_failed; no worker_started comes later.
///   The group does not end before that, so that nobody is started into a group that is gone.
/// - After hold_start: a start in flight comes out as worker_started, then start_finished, or as
///   start_failed. After send_kill it is killed too. After give_up it must be abandoned, with
///   start_failed at once (ETIMEDOUT): there is no deadline then, and this answer is all that the
///   group waits for. A worker that comes out of it before that answer gets the last step anew.
/// - After give_up the endings of abandoned workers are not reported here.
/// - Only event::deadline acts on a deadline. Of things seen at the same time it is handed in last:
///   an exit seen together with the deadline was in time.
class machine {
public:
    explicit machine(rules r) noexcept;

    /// Takes one event in; the actions come in the order in which they must be done. Events that
    /// can't be (an ending with nobody alive, a second start_finished, anything after the end)
    /// change nothing.
    /// @param now  a step lasts from the `now` of the call that entered it: signals that go out
    ///             late do not shorten the time that workers have to obey.
    /// @throws std::bad_alloc  nothing has changed then.
    std::vector<action> on(event e, time_point now);

    /// From now on no step lasts longer than `longest`; the present one not longer than that from
    /// `now` on.
    void shorten(duration longest, time_point now) noexcept;
    /// From now on SIGKILL follows the stop signal at once.
    void drop_grace(time_point now) noexcept;

    state current() const noexcept { return state_; }
    /// When on(event::deadline) must be called; a call before that changes nothing.
    /// It never moves later within a step. time_point::max(): a length too great to add.
    std::optional<time_point> deadline() const noexcept { return deadline_; }
    /// Workers that have started, have not ended and were not given up.
    int live() const noexcept { return live_; }
    bool start_is_over() const noexcept { return !starting_; }
    /// Before the end, also when it was ending already for another reason.
    bool stop_was_asked() const noexcept { return stop_asked_; }
    /// Also when it failed only after a stop was asked: workers keep their grace period then.
    bool start_has_failed() const noexcept { return start_failed_; }

private:
    struct table;

    rules rules_;
    state state_ = state::starting;
    std::optional<time_point> deadline_;
    int live_ = 0;
    bool starting_ = true;
    bool failure_noted_ = false;
    bool stop_asked_ = false;
    bool start_failed_ = false;
};

const char* to_string(state s) noexcept;
const char* to_string(event e) noexcept;
const char* to_string(action a) noexcept;

}  // namespace cohort::lifecycle
