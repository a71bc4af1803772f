// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/bodies.hpp"

#include "hosts/link/little_endian.hpp"

#include <algorithm>
#include <type_traits>

namespace cohort::multihost {
namespace {

static_assert(std::is_same_v<duration, std::chrono::nanoseconds>);

constexpr std::size_t number_size = sizeof(std::uint64_t);
constexpr std::size_t beat_size = 4 * number_size;

std::uint64_t number_of(duration span) noexcept {
    return static_cast<std::uint64_t>(std::max(span, duration{0}).count());
}

}  // namespace

std::vector<std::byte> write_beat(const beat& b) {
    std::vector<std::byte> body(beat_size);
    write_u64(body.data(), b.number);
    write_u64(body.data() + number_size, b.answers);
    write_u64(body.data() + 2 * number_size, number_of(b.held));
    write_u64(body.data() + 3 * number_size, number_of(b.sent));
    return body;
}

std::optional<beat> read_beat(std::span<const std::byte> body) noexcept {
    if (body.size() != beat_size)
        return std::nullopt;
    const auto held = read_u64(body.data() + 2 * number_size);
    const auto sent = read_u64(body.data() + 3 * number_size);
    if (held > number_of(duration::max()) || sent > number_of(latest_far_clock))
        return std::nullopt;
    return beat{read_u64(body.data()), read_u64(body.data() + number_size),
                duration(static_cast<duration::rep>(held)),
                far_clock(static_cast<duration::rep>(sent))};
}

}  // namespace cohort::multihost
