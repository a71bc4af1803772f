// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/text/text.hpp"

#include <cohort/error_record.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cohort::protocol {

/// The longest record that write_error() writes and read_error() parses. A file of up to this size
/// is read whole. Of a longer one, base::text_limit / 2 bytes of its head and as many of its tail
/// are enough.
inline constexpr std::size_t record_limit = 4 * base::text_limit;
/// The limit for a short record, which fits the control file's first page.
inline constexpr std::size_t short_record_limit = 3072;

/// One JSON object, no longer than `limit`; invalid UTF-8 is replaced, each text is bounded. What
/// does not fit is left out in this order: texts beyond 64 KiB, the value, the frames of nested
/// errors, the nested errors, the frames, then more of the texts. If even that does not fit: a
/// fixed minimal record.
std::string write_error(const error_record& error, std::size_t limit = record_limit) noexcept;

/// Reads what a worker or a foreign program left: cohort's own object, torch's @record (both
/// shapes), any other JSON or plain text (which becomes the message). Never throws for its input,
/// never returns text beyond the limit. The trace ends with the message.
/// @param size  of the whole file. If it is larger than `bytes`, those are only the file's head,
/// and `tail` is its end.
/// @return empty: nothing but white space and NULs.
std::optional<error_record> read_error(std::span<const std::byte> bytes, std::uint64_t size,
                                       std::span<const std::byte> tail) noexcept;

}  // namespace cohort::protocol
