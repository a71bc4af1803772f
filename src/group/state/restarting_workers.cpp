// SPDX-License-Identifier: BSL-1.0
#include "group/state/restarting_workers.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace cohort::groups {

using detail::saturating_add;

restarting_workers::restarting_workers(loop::engine& loop,
                                       std::optional<detail::restart_settings> how)
    : loop_(loop), policy_(std::move(how)),
      random_(static_cast<std::minstd_rand::result_type>(
          std::chrono::steady_clock::now().time_since_epoch().count())) {}

void restarting_workers::begin(std::weak_ptr<const void> group, base::callback<void(int)> start) {
    group_ = std::move(group);
    start_ = std::move(start);
}

int restarting_workers::attempt(int index) const {
    const auto found = attempts_.find(index);
    return found == attempts_.end() ? 0 : found->second;
}

restarting_workers::next_step restarting_workers::ended(const end& of) {
    if (is_round()) {
        await_another(of.index, of.ended, false);
        return next_step::attempt;
    }
    if (!policy_.wants(of.success)) {
        if (!of.success || !policy_.is_of_all())
            return next_step::nothing;
        well_[of.index] = false;
        return next_step::perhaps;
    }
    const auto pause = pause_after(of);
    if (!pause)
        return next_step::nothing;
    await_another(of.index, saturating_add(of.ended, *pause), false);
    if (!policy_.is_of_all())
        return next_step::attempt;
    round_ = *pause;
    return next_step::round;
}

std::vector<int> restarting_workers::join_well(int most) {
    std::vector<int> joined;
    while (is_round() && !well_.empty() && std::ssize(joined) < most) {
        const auto [index, is_clear] = *well_.begin();
        well_.erase(well_.begin());
        await_another(index, loop_.now(), is_clear);
        joined.push_back(index);
    }
    return joined;
}

/// @return nothing: no attempt follows
std::optional<restarting_workers::duration> restarting_workers::pause_after(const end& of) {
    if (!policy_.wants(of.success))
        return std::nullopt;
    const double chance = std::uniform_real_distribution<>()(random_);
    return policy_.next({of.index, of.started, of.ended, chance});
}

void restarting_workers::await_another(int index, time_point at, bool is_clear) {
    ++attempts_[index];
    unclear_ += is_clear ? 0 : 1;
    coming_.insert_or_assign(index, coming{at, is_clear, std::nullopt});
}

void restarting_workers::left_nothing(int index) {
    if (const auto found = well_.find(index); found != well_.end())
        found->second = true;
    const auto found = coming_.find(index);
    if (found == coming_.end())
        return;
    if (!std::exchange(found->second.is_clear, true))
        --unclear_;
    if (!is_round() && !has_stopped_)
        arm(index);
}

void restarting_workers::pause_round() {
    const auto until = saturating_add(loop_.now(), *round_);
    pause_ = loop_.timer().at(until, [this, keep = group_.lock()] {
        pause_.reset();
        round_.reset();
        start_some();
    });
}

/// A worker that has started may fail meanwhile. Then the others start after the next round.
void restarting_workers::start_some() {
    for (int count = 0; count < most_at_once; ++count) {
        if (is_round() || has_stopped_ || coming_.empty())
            return;
        start(coming_.begin()->first);
    }
    loop_.post([this, keep = group_.lock()] { start_some(); });
}

bool restarting_workers::forget_one_well() noexcept {
    if (well_.empty())
        return false;
    well_.erase(well_.begin());
    return true;
}

void restarting_workers::arm(int index) {
    coming& next = coming_.at(index);
    if (next.at <= std::chrono::steady_clock::now())
        return start(index);
    next.timer = loop_.timer().at(next.at, [this, keep = group_.lock(), index] {
        coming_.at(index).timer.reset();
        if (!has_stopped_)
            start(index);
    });
}

void restarting_workers::start(int index) {
    coming_.erase(index);
    start_(index);
}

void restarting_workers::stop() {
    has_stopped_ = true;
    if (pause_)
        loop_.timer().cancel(*std::exchange(pause_, std::nullopt));
    round_.reset();
}

std::optional<int> restarting_workers::drop_next() {
    if (coming_.empty())
        return std::nullopt;
    const auto first = coming_.begin();
    const auto [index, next] = *first;
    if (next.timer)
        loop_.timer().cancel(*next.timer);
    unclear_ -= next.is_clear ? 0 : 1;
    coming_.erase(first);
    return index;
}

}  // namespace cohort::groups
