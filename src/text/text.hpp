// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::text {

/// The longest text that a record keeps; of a longer one the head and the tail are kept.
inline constexpr std::size_t text_limit = std::size_t{1} << 20;

/// `text` within `limit` bytes: head and tail with a line in between that says how much is left
/// out.
std::string bounded(std::string_view text, std::size_t limit);
/// The same for a text of which only the head and the tail are at hand; `left_out` bytes lie
/// between them.
std::string bounded(std::string_view head, std::string_view tail, std::uint64_t left_out,
                    std::size_t limit);
/// `text` with every byte that is not UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);
/// Valid UTF-8 without NULs, which would end a what() too early; each is replaced likewise.
std::string clean(std::string_view text);
/// The same within `limit` bytes, as bounded() has it.
std::string clean_and_bounded(std::string_view text, std::size_t limit);
/// The same within `limit` bytes, without its end: of a name or a path.
std::string clean_head(std::string_view text, std::size_t limit);
/// Without white space and NULs around it.
std::string_view trimmed(std::string_view text) noexcept;
/// Whether `part` stands in `text`; in linear time, whatever the two are. (std::string::find takes
/// up to the product of their lengths.)
bool contains(std::string_view text, std::string_view part) noexcept;
/// The start of `text` in no more than `limit` bytes, without half a character at its end.
std::string_view head_of(std::string_view text, std::size_t limit) noexcept;
/// The end of `text` in no more than `limit` bytes, without half a character at its start.
std::string_view tail_of(std::string_view text, std::size_t limit) noexcept;

}  // namespace cohort::text
