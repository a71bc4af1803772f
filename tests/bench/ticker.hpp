// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <vector>

namespace bench {

/// A timer descriptor that ticks every millisecond, and how late each tick was served. Every loop
/// watches the same kind of descriptor, so that no loop's own timers (libuv's count in whole
/// milliseconds) are part of the result.
class ticker {
public:
    ticker();
    ~ticker();
    ticker(const ticker&) = delete;
    ticker& operator=(const ticker&) = delete;

    int fd() const { return fd_; }
    /// The first tick is due a millisecond from now.
    void arm();
    /// To be called when fd() is readable: notes each tick that is due, also those of a loop that
    /// slept through them.
    void served();

    /// In microseconds; `part` is between 0 (the earliest) and 1 (the latest).
    double lateness(double part) const;

private:
    int fd_;
    std::chrono::steady_clock::time_point next_;
    std::vector<std::chrono::steady_clock::duration> late_;
};

}  // namespace bench
