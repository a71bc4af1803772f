// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/bodies.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace cohort::multihost {

/// How long beats take there and back, without the time for which the other end held them, and by
/// how much the clocks of both ends differ.
class round_trips {
public:
    /// A beat is sent. @return its number
    std::uint64_t sent(time_point now) noexcept;
    /// An answer has come. One that can't be is ignored: to a beat that was never sent, was
    /// answered before or was sent long ago, or that was held for longer than it was under way.
    void answered(std::uint64_t number, duration held, time_point now) noexcept;

    /// A beat has come that was sent then.
    void came(far_clock sent, time_point now) noexcept;

    /// The smallest so far: the one that was delayed least. Never negative.
    std::optional<duration> smallest() const noexcept { return smallest_; }
    /// What must be added to the other end's clock to get this one's, as the beats of the last ten
    /// seconds or more say, of which the fastest counts. Wrong by half of the smallest round trip
    /// at most. So the time of an event that the other end tells does not depend on how long that
    /// was under way. Empty: it is not known yet.
    std::optional<duration> offset() const noexcept;

private:
    struct sent_beat {
        std::uint64_t number = 0;  // 0: it is answered
        time_point at;
    };

    std::array<sent_beat, 16> sent_{};  // the last ones, by their number
    std::uint64_t last_ = 0;
    std::optional<duration> smallest_;
    // The clocks of two hosts drift, so what came long ago is forgotten: `least_` is the smallest
    // difference of the present ten beats, `least_before_` that of the ten before.
    std::optional<duration> least_;
    std::optional<duration> least_before_;
    int came_ = 0;
};

}  // namespace cohort::multihost
