// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/text/members.hpp"

#include <cohort/error_record.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace cohort::protocol {

/// How many calls of a stack are kept: the newest ones.
inline constexpr std::size_t frame_limit = 256;
/// How many threads or processes of a worker are kept.
inline constexpr std::size_t activity_limit = 256;

// In JSON the newest call of a stack is first, because an unwinder meets it first and may be killed
// before it reaches the oldest. In a record the newest call is last, in the order of reading.

/// {"m": module, "b": build-id in hexadecimal, "o": offset}, and for a frame with a name also
/// "f": function, "s": source file, "l": line, "i": true if inlined.
base::json json_of(const std::vector<stack_frame>& frames);
/// The frames in an object's member "frames", without empty ones.
std::vector<stack_frame> frames_at(const base::json& object);

base::json json_of(const crash_record& crash);
/// Empty when the object is no crash, or its signal is not one of the five that a worker's own
/// fault sends.
std::optional<crash_record> crash_in(const base::json& object);

base::json json_of(const std::vector<activity>& activities);
/// The activities in an object's member of that name.
std::vector<activity> activities_at(const base::json& object, const char* name);

}  // namespace cohort::protocol
