// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "text/members.hpp"

#include <cohort/error_record.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace cohort::record {

/// How many calls of a stack are kept: the newest ones.
inline constexpr std::size_t frame_limit = 256;
/// How many threads or processes of a worker are.
inline constexpr std::size_t activity_limit = 256;

// In JSON a stack is newest first, since who unwinds meets the newest call first and may not live
// to see the oldest; in a record it is newest last, as it is read.

/// {"m": module, "b": build-id in hexadecimal, "o": offset}, and of a frame with a name
/// "f": function, "s": source file, "l": line, "i": true if inlined.
text::json json_of(const std::vector<stack_frame>& frames);
/// The frames of an object's member "frames", but for those that say nothing.
std::vector<stack_frame> frames_at(const text::json& object);

text::json json_of(const crash_record& crash);
/// Empty when it is none, or not of one of the five signals that a fault of the worker's own sends.
std::optional<crash_record> crash_in(const text::json& object);

text::json json_of(const std::vector<activity>& activities);
/// Those of an object's member of that name.
std::vector<activity> activities_at(const text::json& object, const char* name);

}  // namespace cohort::record
