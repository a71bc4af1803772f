// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "trace/stack.hpp"

#include <chrono>
#include <exception>

namespace cohort::trace {

/// What is noted of a throw.
struct noted_throw {
    raw_stack stack;
    std::chrono::steady_clock::time_point at;
};

/// From now on each throw of this process notes its stack and its time, until its exception is destroyed: some
/// microseconds a throw. For workers; where it is not called, a throw costs one load more. What the
/// linker must do for it: examples/caveats.md, "Traces".
/// @par Source  __cxa_throw of the Itanium C++ ABI, which this library stands in for
void begin_to_note_throws() noexcept;

/// The throw of this exception; null when it was not noted: made by std::make_exception_ptr, or too
/// many are alive. Valid while the exception is.
const noted_throw* throw_of(const std::exception_ptr& exception) noexcept;

/// The exception that was last thrown on this thread and is still alive, for a handler of
/// std::terminate that was called while the stack was unwound; null when none was noted.
std::exception_ptr last_thrown_here() noexcept;

}  // namespace cohort::trace
