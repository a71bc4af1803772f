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

void round_trips::answered(std::uint64_t number, duration held, time_point now) noexcept {
    auto& question = sent_[number % sent_.size()];
    if (number == 0 || question.number != number)
        return;
    question.number = 0;
    const auto elapsed = now - question.at;
    if (held < duration{0} || held > elapsed)
        return;
    smallest_ = std::min(elapsed - held, smallest_.value_or(duration::max()));
}

void round_trips::came(far_clock sent, time_point now) noexcept {
    constexpr int beats_together = 10;
    if (came_++ % beats_together == 0)
        least_before_ = std::exchange(least_, std::nullopt);
    least_ = std::min(now.time_since_epoch() - sent, least_.value_or(duration::max()));
}

std::optional<duration> round_trips::offset() const noexcept {
    if (!smallest_ || !least_)
        return std::nullopt;
    return std::min(*least_, least_before_.value_or(duration::max())) - *smallest_ / 2;
}

}  // namespace cohort::multihost
