// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

namespace bench {

/// The times that workers record, in a memory file that they share with the program that started
/// them. Times are nanoseconds of CLOCK_MONOTONIC.
struct stamps {
    static constexpr int most = 64;
    std::atomic<int> standing_by;
    std::int64_t ended;            // just before _exit
    std::int64_t signalled[most];  // in the handler of SIGTERM
};

inline std::int64_t now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return std::int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

}  // namespace bench
