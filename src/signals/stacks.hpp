// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>

namespace cohort::signals {

/// From now on the stacks of all threads are written to this pipe when the parent asks, as
/// record::read_activities reads them. Threads that block the signal are left out. For the rest of
/// the process, unless the program has an action of its own for the signal.
/// @param pipe          not written to by a forked copy of this process
/// @param signo         by which the parent asks
/// @param grace_period  the parent waits for half of it: threads have a quarter to answer
void report_stacks(int pipe, int signo, std::chrono::nanoseconds grace_period) noexcept;

}  // namespace cohort::signals
