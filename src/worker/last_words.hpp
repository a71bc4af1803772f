// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "worker/report.hpp"

#include <atomic>

#include <sys/types.h>

namespace cohort::worker {

/// Which thread of the worker is the first to do what ends it. Async-signal-safe.
class first_thread {
public:
    /// This process is the worker.
    void begin() noexcept;
    /// @return whether this thread is the first. Does not return if another one is. False in a
    /// forked copy of the worker, which may share its memory (vfork(2)) and so must leave no trace.
    bool is_this() noexcept;

private:
    pid_t owner_ = 0;
    std::atomic<pid_t> first_ = 0;
};

/// Whether this thread is to tell the end; if another one does, when it has.
bool may_tell(report& of) noexcept;

/// Waits for another thread to end the process.
[[noreturn]] void wait_for_the_end() noexcept;

}  // namespace cohort::worker
