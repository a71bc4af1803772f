// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/text/members.hpp"

#include <cohort/error_record.hpp>

#include <cstddef>

namespace cohort::protocol {

/// How many nested errors are kept.
inline constexpr std::size_t nested_limit = 16;
/// The longest text in a nested error, in bytes.
inline constexpr std::size_t nested_text_limit = std::size_t{1} << 15;
/// The longest value that is kept, in bytes.
inline constexpr std::size_t value_limit = std::size_t{1} << 16;
/// The longest name of a type; an exception of a type with a longer name can't be thrown again.
inline constexpr std::size_t type_limit = base::name_limit;

/// What is left out of a record that must be short. Each value also leaves out what those before it
/// do.
enum class left_out { nothing, values, nested_frames, nested, frames };

/// The record as a JSON object, each text within `texts` bytes. Members with a default value are
/// left out.
base::json json_of(const error_record& error, std::size_t texts,
                   left_out without = left_out::nothing);

/// Reads a record. Members of a wrong type or out of range are ignored. Texts are cleaned, and none
/// is longer than `texts`.
error_record error_in(const base::json& object, std::size_t texts);

}  // namespace cohort::protocol
