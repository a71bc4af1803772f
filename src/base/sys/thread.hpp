// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>

namespace cohort::base {

/// Starts a thread that is never joined, with every signal blocked from its first instruction on,
/// because signals are for the threads of the user. It has the processors and the thread_traits of
/// the main thread.
/// @throws std::system_error  the thread can't be started
void start_thread(std::function<void()> body);

}  // namespace cohort::base
