// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace cohort::base {

/// A count as people write it: "1,234,567".
std::string with_separators(std::uint64_t count);

/// A duration as people write it: "30 s", "1.5 s", "100 ms".
std::string duration_text(std::chrono::steady_clock::duration length);

/// Workers as people name them: "worker 3", "workers 0, 8 to 15". Of many only the first are named.
/// @param indices  ascending
std::string workers_text(std::span<const int> indices);

}  // namespace cohort::base
