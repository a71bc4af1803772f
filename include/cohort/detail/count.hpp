// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <concepts>
#include <cstdint>
#include <utility>

namespace cohort::detail::inline v0_1 {

/// @throws std::invalid_argument  always: "cohort: <setter>: negative"
[[noreturn]] COHORT_API void refuse_negative(const char* setter);

/// A setter's argument that is a number of bytes. Any integer type is taken, so that a negative
/// number does not become a huge one.
/// @throws std::invalid_argument  `n` is negative
template <std::integral Number>
std::uint64_t count_of(const char* setter, Number n) {
    if (std::cmp_less(n, 0))
        refuse_negative(setter);
    return static_cast<std::uint64_t>(n);
}

}  // namespace cohort::detail::inline v0_1
