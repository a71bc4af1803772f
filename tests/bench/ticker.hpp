// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <vector>

namespace bench {

/// A timer descriptor that ticks every millisecond. Records how late each tick is served. Every
/// loop watches the same kind of descriptor, so that no loop's own timers (libuv's count in whole
/// milliseconds) affect the result.
class ticker {
public:
    ticker();
    ~ticker();
    ticker(const ticker&) = delete;
    ticker& operator=(const ticker&) = delete;

    int fd() const { return fd_; }
    /// Starts the timer. The first tick is due a millisecond from now.
    void arm();
    /// Call this when fd() is readable. Records each tick that is due, also ticks that a loop slept
    /// through.
    void served();

    /// The lateness in microseconds at quantile `part`, from 0 (the earliest) to 1 (the latest).
    double lateness(double part) const;

private:
    int fd_;
    std::chrono::steady_clock::time_point next_;
    std::vector<std::chrono::steady_clock::duration> late_;
};

}  // namespace bench
