// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/text/json.hpp"
#include "base/text/text.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cohort::base {

// The members of a JSON object, written and read one by one. A member of a foreign object is taken
// if its type is right and its value in range; otherwise it is treated as missing.

/// The longest path, or function name in a stack frame; a longer one loses its end.
inline constexpr std::size_t name_limit = 4096;

/// More values than any of our error records has.
inline constexpr std::size_t most_values = std::size_t{1} << 16;

/// Parses `text`. The result is discarded if `text` is no JSON, is nested deeper than any text of
/// ours, or may have more than `most` values, because a value costs far more time and memory than
/// its text.
json parsed(std::string_view text, std::size_t most = static_cast<std::size_t>(-1));
/// One line, every byte of it valid UTF-8.
std::string line_of(const json& value);

/// The text in a member; empty when there is none.
std::string text_at(const json& object, const char* name);

template <class Integer>
std::optional<Integer> integer_at(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_number_integer())
        return std::nullopt;
    if (found->is_number_unsigned()) {
        const auto value = found->template get<std::uint64_t>();
        return std::in_range<Integer>(value) ? std::optional(static_cast<Integer>(value))
                                             : std::nullopt;
    }
    const auto value = found->template get<std::int64_t>();
    return std::in_range<Integer>(value) ? std::optional(static_cast<Integer>(value))
                                         : std::nullopt;
}

bool flag_at(const json& object, const char* name);

/// Seconds since the epoch, as a number or as a text; from 1970 to 2106, to the microsecond.
std::optional<std::chrono::system_clock::time_point> time_at(const json& object, const char* name);
/// The seconds from the epoch to `time`, with a fraction.
double seconds_of(std::chrono::system_clock::time_point time) noexcept;

/// Two digits a byte.
std::string hex_of(std::string_view bytes);
/// The bytes that hex_of() wrote; empty when `digits` is not such a text.
std::optional<std::string> bytes_of_hex(std::string_view digits);

/// Adds a member, unless it has its default value.
inline void put(json& object, const char* name, const std::string& text) {
    if (!text.empty())
        object[name] = text;
}
template <class Number>
void put(json& object, const char* name, Number value, std::type_identity_t<Number> unless) {
    if (value != unless)
        object[name] = value;
}

}  // namespace cohort::base
