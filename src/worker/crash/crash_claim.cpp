// SPDX-License-Identifier: BSL-1.0
#include "worker/crash/crash_claim.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::worker {

void first_thread::begin() noexcept {
    owner_ = ::getpid();
    first_.store(0);
}

bool first_thread::is_this() noexcept {
    if (::getpid() != owner_)
        return false;
    const auto self = static_cast<pid_t>(::syscall(SYS_gettid));
    pid_t nobody = 0;
    if (first_.compare_exchange_strong(nobody, self))
        return true;
    if (nobody != self)
        wait_for_the_end();
    return false;  // the same thread has failed again while it dealt with its first failure
}

bool may_report(report& of) noexcept {
    const auto who = of.claim();
    if (who == report::reporter::other)
        of.await_reported();
    return who == report::reporter::me;
}

void wait_for_the_end() noexcept {
    for (;;)
        ::pause();
}

}  // namespace cohort::worker
