// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace cohort::base {

/// A time of day by ISO 8601, in UTC: "2026-11-22T14:03:07.123Z".
std::string time_of_day(std::chrono::system_clock::time_point when);
/// Reads what time_of_day() writes. The clock's epoch for any other text.
std::chrono::system_clock::time_point time_of_day_in(std::string_view text) noexcept;

}  // namespace cohort::base
