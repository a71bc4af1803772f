// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "worker/report/report.hpp"

#include <atomic>

#include <sys/types.h>

namespace cohort::worker {

/// Finds the first thread of the worker that crashes, or that calls std::terminate.
/// Async-signal-safe.
class first_thread {
public:
    /// Call it in the worker, at its start: other processes never have a first thread.
    void begin() noexcept;
    /// Does not return if another thread is the first.
    /// @return true: this thread is the first, and calls this for the first time. Always false in a
    /// forked copy of the worker, which may share its memory (vfork(2)) and so must leave no trace.
    bool is_this() noexcept;

private:
    pid_t owner_ = 0;
    std::atomic<pid_t> first_ = 0;
};

/// Whether this thread is to report the worker's end. If another thread reports it, waits until
/// that is written.
bool may_report(report& of) noexcept;

/// Waits for another thread to end the process.
[[noreturn]] void wait_for_the_end() noexcept;

}  // namespace cohort::worker
