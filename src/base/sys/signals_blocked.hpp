// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <csignal>

namespace cohort::base {

/// Blocks all signals of this thread during its lifetime. Threads that it starts meanwhile begin
/// with that mask. By pthread_sigmask, because the system call would also block the two real-time
/// signals that glibc needs for setuid and cancellation. Async-signal-safe.
class signals_blocked {
public:
    signals_blocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;

private:
    sigset_t before_;
};

}  // namespace cohort::base
