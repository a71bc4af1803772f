// SPDX-License-Identifier: BSL-1.0
#include "group/lifecycle/machine.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace cohort::groups {

using detail::saturating_add;

namespace {

constexpr std::size_t state_count = 6;
constexpr std::size_t event_count = 11;
constexpr std::size_t action_count = 5;

/// One step of the ladder: its state, what is sent on entering it, and how long it lasts.
struct step {
    state in;
    std::optional<action> signal;
    duration rules::*length;
};

constexpr step ladder[] = {
    {state::noticing, std::nullopt, &rules::notice_period},
    {state::stopping, action::send_stop_signal, &rules::grace_period},
    {state::killing, action::send_kill, &rules::kill_timeout},
};  // after the last step: give up

const step* step_of(state s) {
    return std::find_if(std::begin(ladder), std::end(ladder),
                        [s](const step& each) { return each.in == s; });
}

}  // namespace

struct machine::table {
    machine& group;
    const time_point now;
    std::vector<action>& todo;

    using reaction = void (table::*)();
    static const reaction cells[state_count][event_count];

    // Done in every state: count() before the table is consulted, end() after it.
    bool count(event e);
    bool all_over() const { return !group.starting_ && group.live_ == 0 && group.waiting_ == 0; }
    void end();

    // The entries of the table.
    void none() {}
    void note() { group.failure_noted_ = true; }
    void go_on();
    void notice();
    void stop() { climb(step_of(state::stopping)); }
    void time_up();
    void kill() { climb(step_of(state::killing)); }
    void next_step() { climb(step_of(group.state_) + 1); }
    void catch_up();

    void climb(const step* from);
};

// clang-format off
/// The life of a group: what each event does in each state. The end of the last worker is no event
/// of its own: all_over() finds it.
const machine::table::reaction machine::table::cells[state_count][event_count] = {
#define R(name) &table::name
//              worker       start     start    ended    worker     worker   not        worker   stop     step's        failed
//              started      finished  failed   well     failed     restarts started    dropped  asked    deadline      elsewhere
/* starting */ {R(none),     R(go_on), R(kill), R(none), R(note),   R(none), R(note),   R(none), R(stop), R(none),      R(note)},
/* running  */ {R(none),     R(none),  R(none), R(none), R(notice), R(none), R(notice), R(none), R(stop), R(none),      R(notice)},
/* noticing */ {R(none),     R(none),  R(none), R(none), R(none),   R(none), R(none),   R(none), R(stop), R(next_step), R(none)},
/* stopping */ {R(catch_up), R(none),  R(none), R(none), R(none),   R(none), R(none),   R(none), R(none), R(next_step), R(none)},
/* killing  */ {R(catch_up), R(none),  R(none), R(none), R(none),   R(none), R(none),   R(none), R(none), R(next_step), R(none)},
/* ended    */ {R(none),     R(none),  R(none), R(none), R(none),   R(none), R(none),   R(none), R(none), R(none),      R(none)},
#undef R
};
// clang-format on

/// Counts the workers that have started and ended. @return false: the event needs no reaction
bool machine::table::count(event e) {
    switch (e) {
    case event::worker_started:
        ++group.live_;
        if (!group.starting_ && group.waiting_ > 0)
            --group.waiting_;
        return true;
    case event::start_finished:
    case event::start_failed:
        if (!group.starting_)
            return false;
        group.starting_ = false;
        return true;
    case event::worker_ended_well:
    case event::worker_failed:
        if (group.live_ == 0)
            return false;
        --group.live_;
        return true;
    case event::worker_restarts:
        if (group.live_ == 0)
            return false;
        --group.live_;
        ++group.waiting_;
        return true;
    case event::worker_not_started:
    case event::worker_dropped:
        if (group.waiting_ == 0)
            return false;
        --group.waiting_;
        return true;
    case event::stop_asked:
        group.stop_asked_ = true;
        return true;
    case event::deadline:
        return group.deadline() && now >= *group.deadline();
    case event::failed_elsewhere:
        return true;
    }
    return false;
}

void machine::table::end() {
    group.state_ = state::ended;
    group.deadline_.reset();
    todo.push_back(action::report_end);
}

/// The start is over. A worker's failure during the start was only noted: react to it now.
void machine::table::go_on() {
    group.state_ = state::running;
    if (group.failure_noted_)
        notice();
}

void machine::table::notice() {
    if (group.rules_.policy == on_failure::stop_all)
        climb(step_of(state::noticing));
}

/// The group's time limit is reached.
void machine::table::time_up() {
    const bool has_failed = group.failure_noted_ && group.rules_.policy == on_failure::stop_all;
    group.time_is_up_ = true;
    group.timed_out_ = group.state_ < state::noticing && !has_failed;
    stop();
}

/// A start that was in flight has made one more worker, which missed the signal of this step.
void machine::table::catch_up() {
    const step* climbed = step_of(group.state_);
    if (group.deadline_)
        todo.push_back(*climbed->signal);
    else
        climb(climbed);  // the others were given up: the new worker gets a last step of its own
}

/// Enters the first step, from `from` on, whose length is not zero; without one it gives up. The
/// signals of all steps on the way are sent. Nobody is started from now on.
void machine::table::climb(const step* from) {
    if (!group.held_ && (group.starting_ || group.waiting_ > 0)) {
        group.held_ = true;
        todo.push_back(action::hold_start);
    }
    for (; from != std::end(ladder); ++from) {
        group.state_ = from->in;
        const bool only_a_start_is_left = group.live_ == 0;
        if (from->signal && !(only_a_start_is_left && from->signal == action::send_stop_signal))
            todo.push_back(*from->signal);
        if (const duration length = group.rules_.*from->length; length > duration::zero()) {
            group.deadline_ = saturating_add(now, length);
            return;
        }
    }
    todo.push_back(action::give_up);
    group.live_ = 0;
    group.deadline_.reset();
}

machine::machine(rules r, int waiting) noexcept : rules_(r), waiting_(waiting) {}

void machine::begin(time_point now) noexcept {
    if (rules_.time_limit)
        limit_ = saturating_add(now, *rules_.time_limit);
}

std::optional<time_point> machine::deadline() const noexcept {
    if (!limit_ || state_ >= state::stopping)
        return deadline_;
    return deadline_ ? std::min(*deadline_, *limit_) : *limit_;
}

bool machine::is_limit_due(event e, time_point now) const noexcept {
    return e == event::deadline && state_ < state::stopping && limit_ && now >= *limit_;
}

std::vector<action> machine::on(event e, time_point now) {
    std::vector<action> todo;
    if (state_ == state::ended)
        return todo;
    todo.reserve(action_count);

    table row{*this, now, todo};
    if (!row.count(e))
        return todo;
    if (!row.all_over() && is_limit_due(e, now))
        row.time_up();
    else if (!row.all_over())
        (row.*table::cells[static_cast<std::size_t>(state_)][static_cast<std::size_t>(e)])();
    if (row.all_over())
        row.end();
    return todo;
}

void machine::shorten(const step_spans& longest, time_point now) noexcept {
    rules_.notice_period = std::min(rules_.notice_period, longest.notice_period);
    rules_.grace_period = std::min(rules_.grace_period, longest.grace_period);
    rules_.kill_timeout = std::min(rules_.kill_timeout, longest.kill_timeout);
    if (deadline_)
        deadline_ = std::min(*deadline_, saturating_add(now, rules_.*step_of(state_)->length));
}

const char* to_string(state s) noexcept {
    constexpr const char* names[state_count] = {"starting", "running", "noticing",
                                                "stopping", "killing", "ended"};
    return names[static_cast<std::size_t>(s)];
}

const char* to_string(event e) noexcept {
    constexpr const char* names[event_count] = {
        "worker_started", "start_finished",  "start_failed",       "worker_ended_well",
        "worker_failed",  "worker_restarts", "worker_not_started", "worker_dropped",
        "stop_asked",     "deadline",        "failed_elsewhere"};
    return names[static_cast<std::size_t>(e)];
}

const char* to_string(action a) noexcept {
    constexpr const char* names[action_count] = {"hold_start", "send_stop_signal", "send_kill",
                                                 "give_up", "report_end"};
    return names[static_cast<std::size_t>(a)];
}

}  // namespace cohort::groups
