// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cmath>
#include <limits>
#include <ratio>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace cohort::detail::inline v0_1 {

using steady_duration = std::chrono::steady_clock::duration;
using steady_time_point = std::chrono::steady_clock::time_point;

static_assert(std::is_same_v<steady_duration::period, std::nano> &&
                  sizeof(steady_duration::rep) == 8,
              "cohort counts in nanoseconds of 64 bits");

__extension__ typedef __int128 wide_int;  // holds every product of two 64-bit numbers

/// `d` as a duration of steady_clock: rounded up to nanoseconds and clamped to the clock's range,
/// so that hours::max, 1e300s and infinity all mean "for ever". Negative durations are allowed.
/// @throws std::invalid_argument  `d` is not a number
template <class Rep, class Period>
steady_duration to_steady(const std::chrono::duration<Rep, Period>& d) {
    using factor = std::ratio_divide<Period, std::nano>;
    if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
        // Computed in the caller's precision, so that 0.1s becomes 100000000 ns and not one more.
        using real = std::common_type_t<Rep, double>;
        const real ns = std::ceil(static_cast<real>(d.count()) * static_cast<real>(factor::num) /
                                  static_cast<real>(factor::den));
        if (std::isnan(ns))
            throw std::invalid_argument("cohort: a duration is not a number");
        if (ns >= static_cast<real>(9223372036854775808.0))  // 2^63, exact in every format
            return steady_duration::max();
        if (ns <= static_cast<real>(-9223372036854775808.0))
            return steady_duration::min();
        return steady_duration(static_cast<steady_duration::rep>(ns));
    } else {
        const wide_int scaled = static_cast<wide_int>(d.count()) * factor::num;
        const wide_int ns = scaled / factor::den + (scaled % factor::den > 0 ? 1 : 0);
        if (ns > std::numeric_limits<steady_duration::rep>::max())
            return steady_duration::max();
        if (ns < std::numeric_limits<steady_duration::rep>::min())
            return steady_duration::min();
        return steady_duration(static_cast<steady_duration::rep>(ns));
    }
}

template <class T>
constexpr bool is_duration = false;
template <class Rep, class Period>
constexpr bool is_duration<std::chrono::duration<Rep, Period>> = true;

/// `t + d`, clamped to the clock's range.
constexpr steady_time_point saturating_add(steady_time_point t, steady_duration d) noexcept {
    const auto a = t.time_since_epoch().count();
    const auto b = d.count();
    if (b > 0 && a > std::numeric_limits<steady_duration::rep>::max() - b)
        return steady_time_point::max();
    if (b < 0 && a < std::numeric_limits<steady_duration::rep>::min() - b)
        return steady_time_point::min();
    return steady_time_point(steady_duration(a + b));
}

/// Like to_steady(), for an option that cannot be negative.
/// @param name  the setter's name, for the message
template <class Rep, class Period>
steady_duration to_option_duration(const char* name, const std::chrono::duration<Rep, Period>& d) {
    if (d < std::chrono::duration<Rep, Period>::zero())
        throw std::invalid_argument(std::string("cohort: ") + name + ": the duration is negative");
    return to_steady(d);
}

}  // namespace cohort::detail::inline v0_1
