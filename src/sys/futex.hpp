// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <time.h>

namespace cohort::sys {

/// A word that threads wait on, and processes that share the memory it is in (futex(2)). All of
/// this is async-signal-safe.
using futex = std::atomic<std::uint32_t>;
static_assert(futex::is_always_lock_free && sizeof(futex) == sizeof(std::uint32_t));

/// Returns at once when the word is not `seen`, else when it was woken, and now and then for
/// nothing: look at the word again.
void wait_on(const futex& word, std::uint32_t seen) noexcept;
/// The same, to a deadline. @return false: it has passed
/// @param deadline  on CLOCK_MONOTONIC
bool wait_on(const futex& word, std::uint32_t seen, const timespec& deadline) noexcept;
/// Wakes all who wait on it.
void wake(const futex& word) noexcept;

/// So far from now, on CLOCK_MONOTONIC. Async-signal-safe.
timespec deadline_in(std::chrono::nanoseconds timeout) noexcept;

}  // namespace cohort::sys
