// SPDX-License-Identifier: BSL-1.0
#include "base/sys/file_size_signal.hpp"

#include <cerrno>

#include <pthread.h>
#include <time.h>

namespace cohort::base {
namespace {

sigset_t the_signal() noexcept {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    return set;
}

}  // namespace

no_file_size_signal::no_file_size_signal() noexcept {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    const auto blocked = the_signal();
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

no_file_size_signal::~no_file_size_signal() {
    const int error = errno;
    const auto awaited = the_signal();
    const timespec at_once{};
    if (!was_pending_)
        (void)sigtimedwait(&awaited, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
}

}  // namespace cohort::base
