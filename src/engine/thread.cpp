// SPDX-License-Identifier: BSL-1.0
#include "engine/thread.hpp"

#include <thread>
#include <utility>

#include <csignal>

namespace cohort::engine {

namespace {

/// Blocks all signals of this thread during its lifetime. By pthread_sigmask, because the system
/// call would also block the two real-time signals that glibc needs for setuid and cancellation.
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

}  // namespace

void start_thread(std::function<void()> body) {
    signals_blocked blocked;  // the new thread inherits this thread's mask
    std::thread(std::move(body)).detach();
}

}  // namespace cohort::engine
