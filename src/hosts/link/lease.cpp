// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/lease.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <utility>

namespace cohort::multihost {

using detail::saturating_add;

void lease::received(time_point now) noexcept {
    heard_ = std::max(heard_, now);
    missed_ = {};
    if (!has_ended())
        state_ = state::listening;
}

void lease::received_beat(const beat& b, time_point now) noexcept {
    trips_.came(b.sent, trips_.answered(b.answers, b.held, now), now);
    to_answer_ = b.number;
    to_answer_came_ = now;
    // On a busy link, too, on which no beat is due.
    if (!answer_)
        answer_ = rules_.answers_at_once ? now : period_after(now);
}

lease_action lease::next(time_point now) noexcept {
    if (state_ == state::over) {
        state_ = state::told;
        return lease_action::end;
    }
    const auto due = deadline();
    if (!due || now < *due)
        return lease_action::wait;
    if (state_ == state::listening) {
        missed_ += now - std::max(*due, heard_);
        if (now >= silence_due()) {
            state_ = state::reading;
            return lease_action::read;
        }
    }
    return now >= beat_due() ? lease_action::send_beat : lease_action::wait;
}

beat lease::make_beat(time_point now) noexcept {
    sent_ = now;
    beat_ = period_after(now);
    answer_.reset();
    const auto number = trips_.sent(now);
    const auto answers = std::exchange(to_answer_, 0);
    return {number, answers, answers > 0 ? now - to_answer_came_ : duration{0},
            now.time_since_epoch()};
}

void lease::has_read() noexcept {
    if (state_ == state::reading)
        state_ = state::over;
}

std::optional<time_point> lease::deadline() const noexcept {
    if (has_ended())
        return std::nullopt;
    return state_ == state::listening ? std::min(silence_due(), beat_due()) : beat_due();
}

/// In step: the next multiple of the period.
time_point lease::period_after(time_point when) const noexcept {
    const auto after = saturating_add(when, rules_.beat_period);
    return rules_.is_in_step ? after - after.time_since_epoch() % rules_.beat_period : after;
}

time_point lease::beat_due() const noexcept {
    auto due = period_after(sent_);
    if (!trips_.smallest())
        due = std::min(due, beat_);
    return answer_ ? std::min(due, *answer_) : due;
}

time_point lease::silence_due() const noexcept {
    return saturating_add(saturating_add(heard_, rules_.host_timeout), missed_);
}

}  // namespace cohort::multihost
