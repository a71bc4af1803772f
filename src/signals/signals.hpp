// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a worker does with signals of its own. All of it is async-signal-safe.
namespace cohort::signals {

void set_default(int signo) noexcept;

/// Ends the process by a signal, whatever it does and whoever has blocked it.
void end_by(int signo) noexcept;

/// Forgets a signal that has come while this thread had it blocked.
void take_back(int signo) noexcept;

}  // namespace cohort::signals
