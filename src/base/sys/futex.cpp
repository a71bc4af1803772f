// SPDX-License-Identifier: BSL-1.0
#include "base/sys/futex.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::base {

void wait_on(const futex& word, std::uint32_t seen) noexcept {
    ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

bool wait_on(const futex& word, std::uint32_t seen, const timespec& deadline) noexcept {
    // Unlike FUTEX_WAIT this takes a point in time, so that a signal does not prolong the wait.
    return ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, seen, &deadline, nullptr,
                     FUTEX_BITSET_MATCH_ANY) == 0 ||
           errno != ETIMEDOUT;
}

void wake(const futex& word) noexcept {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

timespec deadline_in(std::chrono::nanoseconds timeout) noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    timeout = std::max(timeout, std::chrono::nanoseconds(0));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(timeout);
    now.tv_sec += seconds.count();
    now.tv_nsec += (timeout - seconds).count();
    if (now.tv_nsec >= std::nano::den) {
        now.tv_nsec -= std::nano::den;
        ++now.tv_sec;
    }
    return now;
}

}  // namespace cohort::base
