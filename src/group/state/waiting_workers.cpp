// SPDX-License-Identifier: BSL-1.0
#include "group/state/waiting_workers.hpp"

#include <utility>

namespace cohort::groups {

waiting_workers::waiting_workers(loop::engine& loop, const detail::group_settings& settings,
                                 start_in_progress& starts, const machine& life, snapshot& shown,
                                 listener& group)
    : loop_(loop), order_(settings.nprocs, settings.at_once), restarts_(loop, settings.restarts),
      starts_(starts), life_(life), shown_(shown), listener_(group) {
    show();
}

void waiting_workers::begin(const std::weak_ptr<const void>& group) {
    group_ = group;
    restarts_.begin(group, [this](int index) {
        order_.start_again(index);
        if (starts_.starts_later())
            start_next();
    });
}

void waiting_workers::start_next() {
    in_portions([this] { return start_or_put_aside(); });
}

/// @return false: nobody can start now
bool waiting_workers::start_or_put_aside() {
    if (order_.is_closed())
        return false;
    order_.hold_up(restarts_.is_round());
    auto next = order_.peek_aside();
    if (next && listener_.has_room_for(*next)) {
        order_.take_aside();
        starts_.start_later(*next, restarts_.attempt(*next));
        return true;
    }
    next = order_.peek_next();
    if (next && listener_.has_room_for(*next)) {
        (void)order_.take_next();
        starts_.start_later(*next, restarts_.attempt(*next));
        return true;
    }
    if (next) {
        order_.put_aside();
        return true;
    }
    show();
    if (order_.waiting() == 0 && !restarts_.is_on())
        starts_.close_later_starts();
    return false;
}

waiting_workers::next_step waiting_workers::ended(const outcome& of, verdict& judged) {
    if (!restarts_.is_on())
        return next_step::nothing;
    const restarting_workers::end end{of.index, judged.success, of.started, of.ended};
    if (!life_.may_start()) {
        judged.victim = judged.victim || restarts_.would_start_again(end);
        return next_step::nothing;
    }
    const auto next = restarts_.ended(end);
    if (next != next_step::nothing)
        order_.rest();
    if (next == next_step::round) {
        join_well();
        listener_.stop_workers_to_restart();
    }
    show();
    return next;
}

/// Those that had ended well start again with the others.
void waiting_workers::join_well() {
    const auto joined = restarts_.join_well(restarting_workers::most_at_once);
    if (joined.empty())
        return;
    listener_.well_ended_workers_restart(joined);
    loop_.post([this, keep = group_.lock()] {
        join_well();
        go_on();
    });
}

void waiting_workers::place_is_free() {
    order_.give_back_place();
    if (starts_.starts_later())
        start_next();
}

void waiting_workers::left_nothing(int index) {
    restarts_.left_nothing(index);
    if (!order_.is_closed())
        show();
}

/// Those that live until what they print has ended do not wait yet.
void waiting_workers::show() {
    shown_.set_waiting(order_.waiting() - restarts_.well() - restarts_.unclear());
}

void waiting_workers::go_on() {
    if (order_.is_closed() || !restarts_.is_on() || !life_.start_is_over() || life_.live() > 0)
        return;
    if (restarts_.is_round()) {
        const bool some_are_being_started = life_.waiting() > order_.waiting();
        if (!some_are_being_started && restarts_.can_pause_round())
            restarts_.pause_round();
    } else if (restarts_.well() > 0 && life_.waiting() == restarts_.well()) {
        in_portions([this] { return life_.waiting() == restarts_.well() && forget_one_well(); });
    }
}

/// One of those that have ended well does not start again. @return false: none is left
bool waiting_workers::forget_one_well() {
    if (!restarts_.forget_one_well())
        return false;
    order_.end_rest();
    listener_.well_ended_worker_stays();
    return true;
}

void waiting_workers::drop(base::callback<void(int)> dropped) {
    order_.close();
    restarts_.stop();
    shown_.set_waiting(0);
    in_portions([this, dropped = std::move(dropped)] { return drop_one(dropped); });
}

/// @return false: none is left
bool waiting_workers::drop_one(const base::callback<void(int)>& dropped) {
    if (forget_one_well())
        return true;
    const auto pausing = restarts_.drop_next();
    if (pausing)
        order_.end_rest();
    const auto next = pausing ? pausing : order_.drop_next();
    if (next)
        dropped(*next);
    return next.has_value();
}

/// @param step  false: it was the last one
void waiting_workers::in_portions(base::callback<bool()> step) {
    for (int count = 0; count < restarting_workers::most_at_once; ++count)
        if (!step())
            return;
    loop_.post([this, keep = group_.lock(), step = std::move(step)] { in_portions(step); });
}

}  // namespace cohort::groups
