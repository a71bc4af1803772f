// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>

namespace cohort::worker {

/// From now on, until the process ends, the stacks of all threads are written to this pipe when the
/// parent asks, in the form that protocol::read_activities reads. Threads that block the signal are
/// left out. Does nothing if the program has an action of its own for the signal.
/// @param pipe          a forked copy of this process does not write to it
/// @param signo         the signal by which the parent asks
/// @param grace_period  the parent waits for half of it, so threads have a quarter to answer
void report_stacks(int pipe, int signo, std::chrono::nanoseconds grace_period) noexcept;

}  // namespace cohort::worker
