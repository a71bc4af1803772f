// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/bodies.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace cohort::multihost {

/// How long beats take there and back, without the time for which the other end held them.
class round_trips {
public:
    /// A beat is sent. @return its number
    std::uint64_t sent(time_point now) noexcept;
    /// An answer has come. One that can't be is ignored: to a beat that was never sent, was
    /// answered before or was sent long ago, or that was held for longer than it was under way.
    void answered(std::uint64_t number, duration held, time_point now) noexcept;

    /// The smallest so far: the one that was delayed least. Never negative.
    std::optional<duration> smallest() const noexcept { return smallest_; }

private:
    struct sent_beat {
        std::uint64_t number = 0;  // 0: it is answered
        time_point at;
    };

    std::array<sent_beat, 16> sent_{};  // the last ones, by their number
    std::uint64_t last_ = 0;
    std::optional<duration> smallest_;
};

}  // namespace cohort::multihost
