// SPDX-License-Identifier: BSL-1.0
#include "worker/signals/signals.hpp"

#include <csignal>
#include <pthread.h>
#include <time.h>

namespace cohort::worker {
namespace {

sigset_t set_of(int signo) noexcept {
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, signo);
    return only;
}

}  // namespace

void set_default(int signo) noexcept {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signo, &action, nullptr);
}

void end_by(int signo) noexcept {
    set_default(signo);
    const auto only = set_of(signo);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    ::raise(signo);
}

void take_back(int signo) noexcept {
    const auto only = set_of(signo);
    const timespec at_once{};
    ::sigtimedwait(&only, nullptr, &at_once);
}

}  // namespace cohort::worker
