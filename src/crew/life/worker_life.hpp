// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <vector>

namespace cohort::crew {

using time_point = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;

/// How far the life of an attempt has come. It never returns to an earlier state.
enum class state {
    requested,   // its start waits for its turn
    starting,    // its start has begun: there may be a child
    running,     // the child has executed
    unkillable,  // it was given up; only its outcome is still to come
    exited,      // it is reaped; something may live in its process group or cgroup
    gone,        // nothing lives there: its place is free
    over,        // all is reported
};

/// What happens to an attempt.
enum class fact {
    begun,        // its start
    started,      // its child has executed, also when a stop came meanwhile
    not_started,  // its start has failed
    exited,       // it was reaped
    emptied,      // nothing lives in its process group or cgroup
    completed,    // its outcome has all its parts
    lost,         // nothing more will be known of it
    deadline,     // only time has passed
};

/// What must now be done for an attempt, in this order when there are several.
enum class action {
    send_stop_signal,  // then SIGCONT
    send_kill,         // SIGKILL, also to the child of a start that has begun
    give_up,           // the start that has begun, or the worker: it does not end
    // What is reported of an attempt: first one of these two,
    report_not_started,
    report_started,
    // then each of these once, in this order,
    report_exited,  // also when it was given up
    report_gone,    // unless it was given up
    report_ended,
    // and this one instead of those that are missing.
    report_lost,
};

/// How long the steps of a stop last.
struct step_spans {
    duration grace_period{0};  // from the stop signal to SIGKILL
    duration kill_timeout{0};  // from SIGKILL until it is given up
};

/// The life of one attempt of one worker: the one ladder of all stops (stop signal, SIGKILL, given
/// up), and the order of what is reported. No clock, no system calls: `now` is a parameter.
///
/// A limit (of time, of output, of a call) is a stop too, and may begin later. Each step has one
/// deadline: a second stop makes those earlier that come earlier by it. So a stop that has begun is
/// never held up by another one, and a start that hangs has deadlines from its request on.
///
/// - A stop in `requested` ends the attempt: it is not started.
/// - A stop in `starting` has nobody to signal yet. The child gets the present step's signal when
///   it has executed, SIGKILL at that step, and is given up at the last one: it is not started.
/// - `emptied` is waited for at most as long as `rest` says, from the exit on.
/// - Of facts seen at the same time `deadline` is passed in last, because an exit that is seen
///   together with a deadline was in time.
class worker_life {
public:
    /// @param rest  how long the place waits, after the exit, for what the worker has left
    explicit worker_life(duration rest) noexcept : rest_(rest) {}

    /// Takes in a fact. Impossible facts (a second exit, anything after the end) change nothing.
    std::vector<action> on(fact what, time_point now);
    /// Stops the attempt.
    /// @param at  when the stop signal is due: now, or later for a limit
    std::vector<action> stop(const step_spans& spans, time_point at, time_point now);

    state current() const noexcept { return state_; }
    /// When on(fact::deadline) must be called; a call before that changes nothing. Empty: never.
    std::optional<time_point> deadline() const noexcept;

    friend bool operator==(const worker_life&, const worker_life&) = default;

private:
    enum step { signal_step, kill_step, last_step, no_step };
    using actions = std::vector<action>;

    bool has_ladder() const noexcept { return state_ < state::unkillable; }
    void climb(time_point now, actions& todo);
    void take(step next, actions& todo);
    void begin_running(actions& todo);
    void leave(actions& todo);
    void complete(actions& todo);
    void end(action last, actions& todo);

    duration rest_;
    state state_ = state::requested;
    std::array<time_point, no_step> due_{time_point::max(), time_point::max(), time_point::max()};
    int next_ = signal_step;                        // the first step that was not taken
    time_point place_is_free_ = time_point::max();  // in `exited`: at the latest
    bool is_complete_ = false;
};

const char* to_string(state s) noexcept;
const char* to_string(fact f) noexcept;
const char* to_string(action a) noexcept;

}  // namespace cohort::crew
