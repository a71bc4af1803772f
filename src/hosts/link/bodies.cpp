// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/bodies.hpp"

#include "hosts/link/little_endian.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

namespace cohort::multihost {
namespace {

using std::chrono::nanoseconds;
static_assert(std::is_same_v<duration, nanoseconds>);

template <std::size_t N>
std::vector<std::byte> write_numbers(const std::array<std::uint64_t, N>& numbers) {
    std::vector<std::byte> body(N * sizeof(std::uint64_t));
    for (std::size_t i = 0; i < N; ++i)
        write_u64(body.data() + i * sizeof(std::uint64_t), numbers[i]);
    return body;
}

template <std::size_t N>
std::optional<std::array<std::uint64_t, N>> read_numbers(std::span<const std::byte> body) noexcept {
    if (body.size() != N * sizeof(std::uint64_t))
        return std::nullopt;
    std::array<std::uint64_t, N> numbers;
    for (std::size_t i = 0; i < N; ++i)
        numbers[i] = read_u64(body.data() + i * sizeof(std::uint64_t));
    return numbers;
}

std::uint64_t number_of(duration span) noexcept {
    return static_cast<std::uint64_t>(std::max(span, duration{0}).count());
}
bool is_span(std::uint64_t number) noexcept {
    return number <= static_cast<std::uint64_t>(std::numeric_limits<duration::rep>::max());
}
duration span_of(std::uint64_t number) noexcept {
    return duration(static_cast<duration::rep>(number));
}

}  // namespace

std::vector<std::byte> write_beat(const beat& b) {
    return write_numbers<3>({b.number, b.answers, number_of(b.held)});
}

std::vector<std::byte> write_credit(std::uint64_t bytes) { return write_numbers<1>({bytes}); }

std::vector<std::byte> write_spans(const ladder_spans& spans) {
    return write_numbers<2>({number_of(spans.grace_period), number_of(spans.kill_timeout)});
}

std::vector<std::byte> write_signal(const signal_order& order) {
    return write_numbers<2>({order.worker, order.number});
}

std::optional<beat> read_beat(std::span<const std::byte> body) noexcept {
    const auto numbers = read_numbers<3>(body);
    if (!numbers || !is_span((*numbers)[2]))
        return std::nullopt;
    return beat{(*numbers)[0], (*numbers)[1], span_of((*numbers)[2])};
}

std::optional<std::uint64_t> read_credit(std::span<const std::byte> body) noexcept {
    const auto numbers = read_numbers<1>(body);
    return numbers ? std::optional((*numbers)[0]) : std::nullopt;
}

std::optional<ladder_spans> read_spans(std::span<const std::byte> body) noexcept {
    const auto numbers = read_numbers<2>(body);
    if (!numbers || !is_span((*numbers)[0]) || !is_span((*numbers)[1]))
        return std::nullopt;
    return ladder_spans{span_of((*numbers)[0]), span_of((*numbers)[1])};
}

std::optional<signal_order> read_signal(std::span<const std::byte> body) noexcept {
    const auto numbers = read_numbers<2>(body);
    constexpr auto most = std::numeric_limits<std::uint32_t>::max();
    if (!numbers || (*numbers)[0] > most || (*numbers)[1] > most)
        return std::nullopt;
    return signal_order{static_cast<std::uint32_t>((*numbers)[0]),
                        static_cast<std::uint32_t>((*numbers)[1])};
}

}  // namespace cohort::multihost
