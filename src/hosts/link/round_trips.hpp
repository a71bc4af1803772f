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
    /// @return how long both took
    std::optional<duration> answered(std::uint64_t number, duration held, time_point now) noexcept;

    /// A beat has come that was sent then. What was known of the clocks is forgotten if it can't be
    /// true any more: the other end's stood still, because its machine was suspended.
    /// @param trip  what answered() says of it; empty: it says nothing of the clocks
    void came(far_clock sent, std::optional<duration> trip, time_point now) noexcept;

    /// The smallest so far: the one that was delayed least. Never negative.
    std::optional<duration> smallest() const noexcept { return smallest_; }
    /// What must be added to the other end's clock to get this one's, as the fastest of the round
    /// trips of the last ten seconds or more says. Wrong by half of that one at most. So the time
    /// of an event that the other end tells does not depend on how long that was under way. Empty:
    /// it is not known yet.
    std::optional<duration> offset() const noexcept;

private:
    struct sent_beat {
        std::uint64_t number = 0;  // 0: it is answered
        time_point at;
    };
    /// A beat that has come. The offset is between `difference - trip` and `difference`.
    struct measure {
        duration trip;        // there and back
        duration difference;  // of the clocks, as if it had taken no time
    };
    static bool agree(const measure& a, const measure& b) noexcept;

    std::array<sent_beat, 16> sent_{};  // the last ones, by their number
    std::uint64_t last_ = 0;
    std::optional<duration> smallest_;
    // The clocks of two hosts drift, so what came long ago is forgotten: `best_` is the fastest of
    // the present ten beats, `best_before_` that of the ten before.
    std::optional<measure> best_;
    std::optional<measure> best_before_;
    int came_ = 0;
};

}  // namespace cohort::multihost
