// SPDX-License-Identifier: BSL-1.0
#include "group/lifecycle/restart_policy.hpp"

#include <algorithm>
#include <cmath>

namespace cohort::groups {

namespace {

/// `part` of it, which may be more than 1.
restart_policy::duration times(restart_policy::duration pause, double part) {
    using rep = restart_policy::duration::rep;
    const double scaled = static_cast<double>(pause.count()) * part;
    constexpr auto longest = restart_policy::duration::max();
    if (scaled >= static_cast<double>(longest.count()))
        return longest;
    return restart_policy::duration(static_cast<rep>(std::round(std::max(scaled, 0.0))));
}

}  // namespace

std::optional<restart_policy::duration> restart_policy::next(const end& of) {
    if (!how_)
        return std::nullopt;
    history& past = histories_[is_of_all() ? 0 : of.index];
    if (!is_left(past, of.ended))
        return std::nullopt;
    if (how_->within)
        past.restarts.push_back(of.ended);
    else
        ++past.count;
    past.pause = pause_after(past, of);
    return times(past.pause, 1 + how_->jitter * (2 * of.chance - 1));
}

/// Whether less than the most have begun, of all or in the last span.
bool restart_policy::is_left(history& of, time_point now) const {
    if (!how_->within)
        return of.count < how_->most;
    while (!of.restarts.empty() && now - of.restarts.front() >= *how_->within)
        of.restarts.pop_front();
    return of.restarts.size() < static_cast<std::size_t>(how_->most);
}

restart_policy::duration restart_policy::pause_after(history& of, const end& last) const {
    const bool has_lived_well = last.ended - last.started >= how_->longest_pause;
    if (of.pause == duration::zero() || has_lived_well)
        return how_->first_pause;
    return of.pause > how_->longest_pause / 2 ? how_->longest_pause : 2 * of.pause;
}

}  // namespace cohort::groups
