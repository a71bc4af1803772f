// SPDX-License-Identifier: BSL-1.0
#include "crew/life/worker_life.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <cstddef>

namespace cohort::crew {

using detail::saturating_add;

std::vector<action> worker_life::on(fact what, time_point now) {
    actions todo;
    if (state_ == state::over)
        return todo;
    switch (what) {
    case fact::begun:
        if (state_ == state::requested)
            state_ = state::starting;
        break;
    case fact::started:
        if (state_ == state::starting)
            begin_running(todo);
        break;
    case fact::not_started:
        if (state_ <= state::starting)
            end(action::report_not_started, todo);
        break;
    case fact::exited:
        if (state_ != state::running)
            break;
        state_ = state::exited;
        place_is_free_ = saturating_add(now, rest_);
        todo.push_back(action::report_exited);
        break;
    case fact::emptied:
        if (state_ == state::exited)
            leave(todo);
        break;
    case fact::completed:
        complete(todo);
        break;
    case fact::lost:
        end(action::report_lost, todo);
        break;
    case fact::deadline:
        climb(now, todo);
        if (state_ == state::exited && now >= place_is_free_)
            leave(todo);
        break;
    }
    return todo;
}

std::vector<action> worker_life::stop(const step_spans& spans, time_point at, time_point now) {
    actions todo;
    if (!has_ladder())
        return todo;
    const auto kill_at = saturating_add(at, spans.grace_period);
    const std::array<time_point, no_step> wanted{at, kill_at,
                                                 saturating_add(kill_at, spans.kill_timeout)};
    for (std::size_t i = 0; i < wanted.size(); ++i)
        due_[i] = std::min(due_[i], wanted[i]);
    climb(now, todo);
    return todo;
}

std::optional<time_point> worker_life::deadline() const noexcept {
    auto next = time_point::max();
    if (has_ladder())
        next = due_[static_cast<std::size_t>(next_)];
    else if (state_ == state::exited)
        next = place_is_free_;
    return next == time_point::max() ? std::nullopt : std::optional(next);
}

/// Takes the steps that are due. Those on the way to the last one send their signals, too.
void worker_life::climb(time_point now, actions& todo) {
    while (has_ladder() && due_[static_cast<std::size_t>(next_)] <= now)
        take(static_cast<step>(next_++), todo);
}

void worker_life::take(step next, actions& todo) {
    if (state_ == state::requested)
        return end(action::report_not_started, todo);
    if (next == signal_step && state_ == state::running)
        todo.push_back(action::send_stop_signal);
    if (next == kill_step)
        todo.push_back(action::send_kill);
    if (next != last_step)
        return;
    todo.push_back(action::give_up);
    if (state_ == state::starting)
        return end(action::report_not_started, todo);
    state_ = state::unkillable;
    todo.push_back(action::report_exited);
}

/// A stop that came during the start has reached nobody.
void worker_life::begin_running(actions& todo) {
    state_ = state::running;
    if (next_ == kill_step)
        todo.push_back(action::send_stop_signal);
    if (next_ == last_step)
        todo.push_back(action::send_kill);
    todo.push_back(action::report_started);
}

/// Nothing lives in its place any more, or that has taken too long.
void worker_life::leave(actions& todo) {
    state_ = state::gone;
    todo.push_back(action::report_gone);
    if (is_complete_)
        end(action::report_ended, todo);
}

void worker_life::complete(actions& todo) {
    if (state_ == state::exited)
        is_complete_ = true;
    else if (state_ == state::gone || state_ == state::unkillable)
        end(action::report_ended, todo);
}

void worker_life::end(action last, actions& todo) {
    state_ = state::over;
    todo.push_back(last);
}

const char* to_string(state s) noexcept {
    constexpr const char* names[] = {"requested", "starting", "running", "unkillable",
                                     "exited",    "gone",     "over"};
    return names[static_cast<std::size_t>(s)];
}

const char* to_string(fact f) noexcept {
    constexpr const char* names[] = {"begun",   "started",   "not_started", "exited",
                                     "emptied", "completed", "lost",        "deadline"};
    return names[static_cast<std::size_t>(f)];
}

const char* to_string(action a) noexcept {
    constexpr const char* names[] = {"send_stop_signal",   "send_kill",      "give_up",
                                     "report_not_started", "report_started", "report_exited",
                                     "report_gone",        "report_ended",   "report_lost"};
    return names[static_cast<std::size_t>(a)];
}

}  // namespace cohort::crew
