// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::base {

/// The longest text that a record keeps; a longer one keeps its head and its tail.
inline constexpr std::size_t text_limit = std::size_t{1} << 20;

/// `text` within `limit` bytes: head and tail with a line in between that says how much is left
/// out.
std::string bounded(std::string_view text, std::size_t limit);
/// bounded() for a text known by its head and its tail, with `left_out` bytes between them.
std::string bounded(std::string_view head, std::string_view tail, std::uint64_t left_out,
                    std::size_t limit);
/// `text` with every byte that is not UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);
/// Like valid_utf8(), but also replaces NULs, because a NUL would end a what() too early.
std::string clean(std::string_view text);
/// The clean text, shortened to `limit` bytes in the way of bounded().
std::string clean_and_bounded(std::string_view text, std::size_t limit);
/// The clean text, cut off after `limit` bytes; for a name or a path.
std::string clean_head(std::string_view text, std::size_t limit);
/// `text` without the white space and NULs around it.
std::string_view trimmed(std::string_view text) noexcept;
/// Whether `text` contains `part`, in linear time for any input. (std::string::find takes up to the
/// product of their lengths.)
bool contains(std::string_view text, std::string_view part) noexcept;
/// The start of `text` in no more than `limit` bytes, without half a character at its end.
std::string_view head_of(std::string_view text, std::size_t limit) noexcept;
/// The end of `text` in no more than `limit` bytes, without half a character at its start.
std::string_view tail_of(std::string_view text, std::size_t limit) noexcept;

}  // namespace cohort::base
