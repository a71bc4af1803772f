// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/trace/stack.hpp"

#include <chrono>
#include <exception>

namespace cohort::protocol {

/// What is noted about a throw.
struct noted_throw {
    raw_stack stack;
    std::chrono::steady_clock::time_point at;
};

/// From now on the stack and time of each throw in this process are noted, until its exception is
/// destroyed. That costs some microseconds a throw. For workers; in other processes, which do not
/// call this, a throw costs one load more. How to link for it: examples/caveats.md, "Traces".
/// @source __cxa_throw of the Itanium C++ ABI, which this library replaces
void begin_to_note_throws() noexcept;

/// The throw of this exception. Null when it was not noted, because std::make_exception_ptr made
/// the exception or too many are alive. Valid while the exception is alive.
const noted_throw* throw_of(const std::exception_ptr& exception) noexcept;

/// The exception that was last thrown on this thread and is still alive; null when none was noted.
/// For a handler of std::terminate that was called while the stack was unwound.
std::exception_ptr last_thrown_here() noexcept;

}  // namespace cohort::protocol
