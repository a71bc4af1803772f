// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/error_record.hpp>

#include <cstddef>
#include <optional>
#include <span>
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

}  // namespace cohort::protocol
