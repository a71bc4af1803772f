// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace cohort::base {

/// 64 random bits, by which processes recognise a thing that they share. No other process can guess
/// them.
/// @throws std::system_error
[[nodiscard]] std::uint64_t random_number();

}  // namespace cohort::base
