// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/lifecycle/machine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

/// A ledger beside the lifecycle's machine. It keeps what has really happened, and knows the facts
/// that machine.hpp promises. It is written from those promises alone.
namespace lifecycle_search_test {

using namespace cohort::groups;
using cohort::on_failure;

using instant = std::int64_t;  // on the machine's clock
constexpr instant never = std::numeric_limits<instant>::min();
constexpr instant ever = std::numeric_limits<instant>::max();
constexpr int event_kinds = 11;

/// @return `ever` if the sum is too large
inline instant later_by(instant now, instant length) {
    instant sum = 0;
    return __builtin_add_overflow(now, length, &sum) ? ever : sum;
}

/// All that a machine shows.
struct view {
    explicit view(const machine& m)
        : current(m.current()), live(m.live()), waiting(m.waiting()),
          start_is_over(m.start_is_over()), may_start(m.may_start()),
          stop_was_asked(m.stop_was_asked()), time_is_up(m.time_is_up()), timed_out(m.timed_out()) {
        if (const auto at = m.deadline())
            deadline = at->time_since_epoch().count();
    }

    state current;
    instant deadline = never;
    int live, waiting;
    bool start_is_over, may_start, stop_was_asked, time_is_up, timed_out;

    friend bool operator==(const view&, const view&) = default;
};

inline bool has(const std::vector<action>& todo, action a) {
    return std::find(todo.begin(), todo.end(), a) != todo.end();
}

/// worker_failed is a failure, and what counts as one.
inline bool is_failure(event e) {
    return e == event::worker_failed || e == event::worker_not_started ||
           e == event::failed_elsewhere;
}

/// The signals that a worker has had: an index of ledger::live.
enum signals { no_signal = 0, had_stop = 1, had_kill = 2, had_both = 3 };

struct ledger {
    // --- what the group was given, and its clock ---
    on_failure policy;
    instant spans[3];       // of the notice, the grace period and the kill time-out; `shorten` acts
    instant limit = never;  // when the group's time is over
    instant now;

    // --- what has happened ---
    int live[4] = {};  // workers, by the signals that they have had
    int waiting = 0;
    bool start_is_over = false;
    bool start_failed = false;
    bool came_late = false;  // a worker came from the start that was in flight at hold_start
    bool failed = false;
    bool asked = false;
    bool time_is_up = false;
    bool timed_out = false;
    bool told_to_hold = false;
    bool kill_was_sent = false;
    bool was_given_up = false;
    bool end_was_reported = false;
    instant due = never;  // when the step is over
    unsigned seen = 0;    // kinds of events, if they are to be told apart

    const char* broken = nullptr;  // the first fact that does not hold

    ledger(const rules& r, int waits, instant begun)
        : policy(r.policy), spans{r.notice_period.count(), r.grace_period.count(),
                                  r.kill_timeout.count()},
          now(begun), waiting(waits) {
        if (r.time_limit)
            limit = later_by(now, r.time_limit->count());
    }

    int alive() const { return live[no_signal] + live[had_stop] + live[had_kill] + live[had_both]; }
    bool start_is_left() const { return !start_is_over || waiting > 0; }
    bool nobody_is_left() const { return alive() == 0 && !start_is_left(); }
    bool failure_counts() const { return failed && policy == on_failure::stop_all; }
    /// Whether there is a reason to stop the group.
    bool is_stopped() const {
        return asked || time_is_up || start_failed || (failure_counts() && start_is_over);
    }
    /// Whether `e` is no impossible event.
    bool can_be(event e, const view& shown) const {
        switch (e) {
        case event::start_finished:
        case event::start_failed:
            return !end_was_reported && !start_is_over;
        case event::worker_ended_well:
        case event::worker_failed:
        case event::worker_restarts:
            return !end_was_reported && alive() > 0;
        case event::worker_not_started:
        case event::worker_dropped:
            return !end_was_reported && waiting > 0;
        case event::deadline:
            return !end_was_reported && shown.deadline != never && now >= shown.deadline;
        default:
            return !end_was_reported;
        }
    }

    /// Takes down what the machine has answered to an event.
    /// @param had  of which kind the worker is that has ended
    void take(event e, int had, const view& before, const std::vector<action>& todo,
              const view& after) {
        if (!can_be(e, before)) {
            const bool same = todo.empty() && after == before;
            fact(same || !end_was_reported, "after the end nothing happens any more");
            fact(same || e != event::deadline, "a call before the deadline changes nothing");
            fact(same, "an impossible event changes nothing");
            return;
        }
        const bool limit_is_due = e == event::deadline && limit != never && now >= limit &&
                                  before.current < state::stopping;
        happen(e, had, limit_is_due);
        const step_call call{e, before, after, todo, limit_is_due, was_given_up};
        const bool only_the_end_is_left = nobody_is_left();
        for (std::size_t i = 0; i < todo.size(); ++i) {
            fact(i == 0 || todo[i - 1] < todo[i], "actions come in their order, and none twice");
            perform(todo[i], call);
        }
        if (only_the_end_is_left)
            fact(todo.size() == 1, "when the last one has ended, nothing is left but to report it");
        else
            check_step(call);
        check_end(after);
        check_signals(after);
        enter(call);
        check_view(before, after);
    }

    /// Takes down a call of shorten().
    void take(const step_spans& longest, const view& before, view after) {
        const instant most[] = {longest.notice_period.count(), longest.grace_period.count(),
                                longest.kill_timeout.count()};
        for (int i = 0; i < 3; ++i)
            spans[i] = std::min(spans[i], most[i]);
        if (due != never)
            due = std::min(due, later_by(now, span(before.current)));
        check_view(before, after);
        after.deadline = before.deadline;
        fact(after == before, "`shorten` changes nothing but the deadline");
    }

private:
    struct step_call {
        event e;
        const view& before;
        const view& after;
        const std::vector<action>& todo;
        bool limit_is_due;
        bool was_given_up;
    };

    void fact(bool holds, const char* sentence) {
        if (!holds && !broken)
            broken = sentence;
    }

    static int number(state s) { return static_cast<int>(s) - static_cast<int>(state::noticing); }
    static bool is_step(state s) { return s >= state::noticing && s <= state::killing; }
    instant span(state s) const { return is_step(s) ? spans[number(s)] : 0; }

    void happen(event e, int had, bool limit_is_due) {
        failed = failed || is_failure(e);
        switch (e) {
        case event::worker_started:
            ++live[no_signal];
            if (start_is_over)
                --waiting;
            else
                came_late = told_to_hold;
            break;
        case event::start_failed:
        case event::start_finished:
            start_failed = e == event::start_failed;
            start_is_over = true;
            break;
        case event::worker_restarts:
            ++waiting;
            [[fallthrough]];
        case event::worker_ended_well:
        case event::worker_failed:
            --live[had];
            break;
        case event::worker_not_started:
        case event::worker_dropped:
            --waiting;
            break;
        case event::stop_asked:
            asked = true;
            break;
        case event::deadline:
            timed_out = timed_out || (limit_is_due && !failure_counts());
            time_is_up = time_is_up || limit_is_due;
            break;
        case event::failed_elsewhere:
            break;
        }
    }

    void perform(action a, const step_call& call) {
        switch (a) {
        case action::hold_start:
            fact(!told_to_hold, "hold_start comes once at most");
            fact(start_is_left(), "hold_start comes only if somebody may still be started");
            fact(is_stopped(), "hold_start comes only to a group that is being stopped");
            told_to_hold = true;
            break;
        case action::send_stop_signal:
            fact(!kill_was_sent, "the stop signal never comes after SIGKILL");
            fact(live[no_signal] > 0, "the stop signal is sent only if a worker has not had it");
            live[had_stop] += live[no_signal];
            live[no_signal] = 0;
            break;
        case action::send_kill:
            fact(live[no_signal] == 0 || call.before.current == state::killing ||
                     call.e == event::start_failed,
                 "the stop signal goes out before SIGKILL, unless the start has failed");
            fact(live[no_signal] + live[had_stop] > 0 || start_is_left(),
                 "SIGKILL is sent only if a worker has not had it, or a start may be in flight");
            live[had_kill] += live[no_signal];
            live[had_both] += live[had_stop];
            live[no_signal] = live[had_stop] = 0;
            kill_was_sent = true;
            break;
        case action::give_up:
            fact(live[no_signal] + live[had_stop] == 0, "nobody is given up without SIGKILL");
            fact(!nobody_is_left(), "there is somebody to give up");
            live[had_kill] = live[had_both] = 0;
            was_given_up = true;
            break;
        case action::report_end:
            fact(!end_was_reported, "the end is reported once");
            fact(alive() == 0, "no worker lives at the end, but those that were given up");
            fact(start_is_over, "a group does not end before its start is over");
            fact(waiting == 0, "a group does not end while a worker waits");
            end_was_reported = true;
            break;
        }
    }

    /// How the call has led from step to step. Somebody was left when it began.
    void check_step(const step_call& call) {
        const auto& [e, before, after, todo, limit_is_due, was_up] = call;
        const state from = before.current;
        const state to = after.current;
        const bool moved = to != from;
        const bool gave_up = has(todo, action::give_up);
        const bool is_due = e == event::deadline && due != never && now >= due;
        fact(to >= from, "a group never returns to an earlier state");
        fact(to != state::running || start_is_over,
             "a group does not run before its start is over");

        // Why a group is stopped.
        if (is_failure(e) && from == state::starting)
            fact(to == from, "a failure during the start waits until the start is over");
        if (from < state::noticing && !is_stopped()) {
            fact(!failed || to < state::noticing, "with keep_going no failure stops the group");
            fact(to < state::noticing, "without a reason a group is not stopped");
            fact(!start_is_over || to == state::running, "a group whose start is over runs");
        }
        if (failure_counts() && start_is_over)
            fact(to > state::running, "with stop_all a failure stops a group that has started");
        fact(e != event::stop_asked || to > state::noticing,
             "a stop that is asked for waits for no notice period");
        fact(!limit_is_due || to > state::noticing, "at its time limit a group is stopped");
        if (moved && to == state::noticing)
            fact(failure_counts() && !asked && !time_is_up && !start_failed,
                 "a notice period comes only after a failure");
        if (from == state::starting && e == event::start_failed)
            fact(has(todo, action::send_kill) && !has(todo, action::send_stop_signal),
                 "a failed start is followed by SIGKILL at once");

        // How long it stays in a step.
        const bool is_cut = from == state::noticing && (e == event::stop_asked || limit_is_due);
        const bool anew = was_up && e == event::worker_started;  // the last step
        if (moved && from >= state::noticing)
            fact(is_due || is_cut || anew, "a step is over at its deadline, not before");
        fact(!is_due || moved || gave_up, "at its deadline a step is over");
        fact(!gave_up || moved || is_due || anew, "nobody is given up before the kill time-out");
        if (moved || gave_up) {
            const int first = e == event::start_failed || anew ? 2
                              : is_cut || e == event::stop_asked || limit_is_due
                                  ? 1
                                  : std::max(number(from), -1) + 1;
            for (int step = first; step < 3 && (gave_up || step < number(to)); ++step)
                fact(spans[step] <= 0, "a step that has a length is not passed over");
            fact(gave_up || !is_step(to) || span(to) > 0,
                 "a step without a length is passed at once");
            fact(to < state::noticing || told_to_hold || !start_is_left(),
                 "no step begins before starts are held");
        }

        // What is sent.
        fact(from == state::killing || to != state::killing || has(todo, action::send_kill),
             "SIGKILL is sent to a start in flight too");
        fact(moved || is_due || e == event::worker_started || todo.empty(),
             "without a new step or a new worker nothing is sent");
    }

    void check_end(const view& after) {
        fact(nobody_is_left() == end_was_reported, "the end is reported when nobody is left");
        fact((after.current == state::ended) == end_was_reported,
             "a group has ended when its end is reported");
    }

    void check_signals(const view& after) {
        if (after.current < state::killing)
            fact(live[had_kill] + live[had_both] == 0, "SIGKILL is not sent before its step");
        if (after.current < state::stopping)
            fact(live[had_stop] == 0, "the stop signal is not sent before its step");
        if (after.current == state::stopping)
            fact(live[no_signal] == 0, "every worker gets the stop signal, also a late one");
        if (after.current == state::killing)
            fact(live[no_signal] + live[had_stop] == 0,
                 "every worker gets SIGKILL, also a late one");
    }

    /// The step's deadline. It begins with the call that enters the step.
    void enter(const step_call& call) {
        const state to = call.after.current;
        const bool anew = call.was_given_up && call.e == event::worker_started;
        if (has(call.todo, action::give_up) || !is_step(to))
            due = never;
        else if (to != call.before.current || anew) {
            due = later_by(now, span(to));
            was_given_up = false;
        }
    }

    void check_view(const view& before, const view& after) {
        fact(after.live == alive(), "live() counts those that live and were not given up");
        fact(after.waiting == waiting, "waiting() counts those that wait");
        fact(after.start_is_over == start_is_over, "start_is_over() tells of the start");
        fact(after.may_start == (!is_stopped() && !end_was_reported),
             "workers may be started until something stops the group");
        fact(after.stop_was_asked == asked, "stop_was_asked() tells of every stop before the end");
        fact(after.time_is_up == time_is_up, "the time is up only if the limit stops the workers");
        fact(after.timed_out == timed_out, "a group times out unless a failure came before");
        const bool is_limited = limit != never && after.current < state::stopping;
        if (before.current == after.current && before.deadline != never)
            fact(after.deadline <= before.deadline, "a deadline never moves later within a step");
        fact(after.deadline != never || !is_limited, "a time limit is a deadline");
        fact(after.deadline == never || is_limited || due != never,
             "without a step and a time limit there is no deadline");
        const instant until = due == never ? ever : due;
        if (after.deadline != never)
            fact(after.deadline == (is_limited ? std::min(until, limit) : until),
                 "a step lasts as long as the rules say, from the call that entered it");
        fact(after.deadline != never || due == never, "a step has a deadline");
    }
};

}  // namespace lifecycle_search_test
