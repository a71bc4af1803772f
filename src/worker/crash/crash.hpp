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

/// From now on, until the process ends, SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT are written to
/// the report, with the stack; then the signal ends the worker, as it would have without this. Only
/// signals with the default action: the handlers of a sanitizer and of the program stay. On the
/// calling thread the handler gets a signal stack, unless the thread has one.
void report_crashes(report& to) noexcept;

/// From now on, until the process ends, a call of std::terminate is written to the report, with the
/// exception that led to it and its stack. Then the handler that the program had set runs.
void report_terminate(report& to) noexcept;

}  // namespace cohort::worker
