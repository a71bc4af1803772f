// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/credits.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

// How much of streams may be under way, in bytes. What comes over a window is a breach, so a window
// bounds what an end keeps.
namespace cohort::multihost {

/// What a message counts besides its bytes, because an empty one takes memory too.
inline constexpr std::uint64_t message_cost = 128;
/// Of one stream of a worker, given back as its sinks take it.
inline constexpr std::uint64_t stream_window = 262'144;
/// Of all streams of a group's workers at one host, given back on receipt: beats and ends wait for
/// no more.
inline constexpr std::uint64_t data_window = usual_window;
/// Of a stream that waits for credit so much is read from its pipe.
inline constexpr std::size_t most_waiting = 65'536;

/// What a stream may send besides at its worker's end, so that a user who reads nothing does not
/// hold up that end: what waits for credit, what is being read, and what a pipe holds.
/// @param pipe_size  as the group's plan has it; the worker may enlarge its pipe to 1 MiB
constexpr std::uint64_t reserve_of(std::size_t pipe_size) noexcept {
    constexpr std::size_t largest = std::size_t{1} << 31;  // see pipe(7)
    return 4 * most_waiting +
           std::max<std::uint64_t>(usual_window, std::bit_ceil(std::min(pipe_size, largest)));
}

}  // namespace cohort::multihost
