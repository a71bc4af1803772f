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
#include <vector>

namespace cohort::protocol {

/// The longest text that is parsed here; of a longer one only the beginning is parsed.
inline constexpr std::size_t crash_limit = std::size_t{1} << 20;

/// Reads what the handler of a fatal signal has written in the worker:
/// {"signal":11,"code":1,"address":16,"frames":[{"m":"/bin/x","b":"f00d","o":4660},...]}
/// with the newest call first. The handler may have been killed at any byte, so only whole frames
/// count. Foreign input: bounded, never an error.
/// @return the crash, with a trace that is made from these frames, which have no names yet. Empty:
/// no such text, or another signal than SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT.
std::optional<crash_record> read_crash(std::span<const std::byte> bytes) noexcept;

/// Reads what the threads of a worker were doing, from a text that may be torn too:
/// {"threads":[{"id":7,"name":"main","state":"S","wait":"futex_wait","frames":[...]},...]}
std::vector<activity> read_activities(std::span<const std::byte> bytes) noexcept;

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
