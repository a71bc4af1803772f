// SPDX-License-Identifier: BSL-1.0
// For the guardian's program, which has no C library: see main.cpp.
#pragma once

#include "base/sys/raw_call.hpp"

#include <ctime>

#include <sys/syscall.h>

namespace cohort::start {

inline long now_ms() {
    timespec now{};
    base::raw_call(SYS_clock_gettime, CLOCK_MONOTONIC, base::address(&now));
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

inline void sleep_ms(long length_ms) {
    const timespec length{length_ms / 1000, length_ms % 1000 * 1'000'000};
    base::raw_call(SYS_nanosleep, base::address(&length), 0);
}

}  // namespace cohort::start
