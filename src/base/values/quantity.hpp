// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cohort::base {

/// A count as people write it: "1,234,567".
std::string with_separators(std::uint64_t count);

/// A duration as people write it: "30 s", "1.5 s", "100 ms".
std::string duration_text(std::chrono::steady_clock::duration length);

}  // namespace cohort::base
