// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <time.h>

namespace cohort::base {

/// A word on which threads wait, also threads of other processes that share its memory (futex(2)).
/// All functions here are async-signal-safe.
using futex = std::atomic<std::uint32_t>;
static_assert(futex::is_always_lock_free && sizeof(futex) == sizeof(std::uint32_t));

/// Returns at once when the word is not `seen`, else when a wake() comes. It may return without
/// either, so look at the word again.
void wait_on(const futex& word, std::uint32_t seen) noexcept;
/// wait_on() with a deadline. @return false: the deadline has passed
/// @param deadline  on CLOCK_MONOTONIC
bool wait_on(const futex& word, std::uint32_t seen, const timespec& deadline) noexcept;
/// Wakes all threads that wait on the word.
void wake(const futex& word) noexcept;

/// The point on CLOCK_MONOTONIC that is `timeout` from now. Async-signal-safe.
timespec deadline_in(std::chrono::nanoseconds timeout) noexcept;

}  // namespace cohort::base
