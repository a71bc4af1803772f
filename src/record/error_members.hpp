// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "text/members.hpp"

#include <cohort/error_record.hpp>

#include <cstddef>

namespace cohort::record {

inline constexpr std::size_t nested_limit = 16;                         ///< entries
inline constexpr std::size_t nested_text_limit = std::size_t{1} << 15;  ///< of each text of one
inline constexpr std::size_t value_limit = std::size_t{1} << 16;  ///< longer ones are left out
inline constexpr std::size_t type_limit = text::name_limit;  ///< a longer one can't be thrown again

/// What of a record is left out when it must be short; each leaves out what those before it do.
enum class left_out { nothing, values, nested_frames, nested, frames };

/// The members of a record, each text within `texts` bytes. Those with a default value are left
/// out.
text::json json_of(const error_record& error, std::size_t texts,
                   left_out without = left_out::nothing);

/// Every member that is of its kind and in its range, clean; no text is longer than `texts`.
error_record error_in(const text::json& object, std::size_t texts);

}  // namespace cohort::record
