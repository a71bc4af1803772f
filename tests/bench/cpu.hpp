// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/resource.h>

namespace bench {

/// The CPU time used so far, in microseconds, by RUSAGE_SELF (all threads) or RUSAGE_CHILDREN
/// (reaped children).
inline double cpu_us(int who) {
    rusage used{};
    ::getrusage(who, &used);
    const auto us = [](const timeval& t) { return double(t.tv_sec) * 1e6 + double(t.tv_usec); };
    return us(used.ru_utime) + us(used.ru_stime);
}

}  // namespace bench
