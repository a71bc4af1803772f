// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/round_trips.hpp"

#include <algorithm>

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

}  // namespace cohort::multihost
