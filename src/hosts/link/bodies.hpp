// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// What the link itself knows of the messages on it.
namespace cohort::multihost {

using time_point = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;

/// A time by the steady clock of the other end, which began at another moment than this one's.
/// Only what two of them differ by means something here.
using far_clock = duration;
/// A clock that says more is wrong. Two such times can be added and subtracted.
inline constexpr far_clock latest_far_clock = far_clock::max() / 4;

struct beat {
    std::uint64_t number = 0;   // of this beat, from 1 on
    std::uint64_t answers = 0;  // the number of a beat of the other end, 0: none
    duration held{0};           // how long ago that one came
    far_clock sent{0};

    friend bool operator==(const beat&, const beat&) = default;
};

/// How long an agent's ladder may take.
struct ladder_spans {
    duration grace_period{0};
    duration kill_timeout{0};

    friend bool operator==(const ladder_spans&, const ladder_spans&) = default;
};

// A span or a time below zero is written as zero.
std::vector<std::byte> write_beat(const beat& b);
/// Empty: it is none. That is breach::body.
std::optional<beat> read_beat(std::span<const std::byte> body) noexcept;

}  // namespace cohort::multihost
