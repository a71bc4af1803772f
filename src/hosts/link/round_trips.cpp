// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/round_trips.hpp"

#include <algorithm>
#include <utility>

namespace cohort::multihost {

std::uint64_t round_trips::sent(time_point now) noexcept {
    ++last_;
    sent_[last_ % sent_.size()] = {last_, now};
    return last_;
}

std::optional<duration> round_trips::answered(std::uint64_t number, duration held,
                                              time_point now) noexcept {
    auto& question = sent_[number % sent_.size()];
    if (number == 0 || question.number != number)
        return std::nullopt;
    question.number = 0;
    const auto elapsed = now - question.at;
    if (held < duration{0} || held > elapsed)
        return std::nullopt;
    const auto trip = elapsed - held;
    smallest_ = std::min(trip, smallest_.value_or(duration::max()));
    return trip;
}

bool round_trips::agree(const measure& a, const measure& b) noexcept {
    return a.difference - a.trip <= b.difference && b.difference - b.trip <= a.difference;
}

void round_trips::came(far_clock sent, std::optional<duration> trip, time_point now) noexcept {
    constexpr int beats_together = 10;
    if (!trip)
        return;
    const measure one{*trip, now.time_since_epoch() - sent};
    if ((best_ && !agree(*best_, one)) || (best_before_ && !agree(*best_before_, one))) {
        best_.reset();
        best_before_.reset();
        came_ = 0;
    }
    if (came_++ % beats_together == 0)
        best_before_ = std::exchange(best_, std::nullopt);
    if (!best_ || one.trip <= best_->trip)
        best_ = one;
}

std::optional<duration> round_trips::offset() const noexcept {
    if (!best_)
        return std::nullopt;
    const auto& best = best_before_ && best_before_->trip < best_->trip ? *best_before_ : *best_;
    return best.difference - best.trip / 2;
}

}  // namespace cohort::multihost
