// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::record {

/// `text` within `limit` bytes: head and tail with a line in between that says how much is left
/// out.
std::string bounded(std::string_view text, std::size_t limit);
/// The same for a text of which only the head and the tail are at hand; `left_out` bytes lie
/// between them.
std::string bounded(std::string_view head, std::string_view tail, std::uint64_t left_out,
                    std::size_t limit);
/// `text` with every byte that is not UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);
/// The start of `text` in no more than `limit` bytes, without half a character at its end.
std::string_view head_of(std::string_view text, std::size_t limit) noexcept;
/// The end of `text` in no more than `limit` bytes, without half a character at its start.
std::string_view tail_of(std::string_view text, std::size_t limit) noexcept;

}  // namespace cohort::record
