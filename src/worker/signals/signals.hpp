// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a worker does with signals to itself. All functions are async-signal-safe.
namespace cohort::worker {

void set_default(int signo) noexcept;

/// Ends the process by a signal, even if the signal has a handler or is blocked.
void end_by(int signo) noexcept;

/// Removes a pending signal, which this thread has blocked.
void take_back(int signo) noexcept;

}  // namespace cohort::worker
