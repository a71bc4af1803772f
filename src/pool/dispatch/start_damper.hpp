// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "pool/dispatch/call_list.hpp"

#include <algorithm>

namespace cohort::pools {

/// When a pool's next worker may start: workers that die early are not replaced at full speed. No
/// clock, no system calls.
class start_damper {
public:
    /// @param first, longest  the pauses, each twice the one before
    /// @param attempts        so many deaths in a row before READY break the pool
    start_damper(duration first, duration longest, int attempts) noexcept
        : first_(first), longest_(longest), attempts_(attempts) {}

    /// A worker has died before it has finished a task.
    /// @param was_ready  whether it had become READY
    /// @param chance     from 0 to 1: makes the pause up to a half shorter
    void died_early(bool was_ready, time_point now, double chance) noexcept {
        if (!was_ready)
            ++deaths_;
        pause_ = pause_ == duration() ? first_ : std::min(2 * pause_, longest_);
        next_ = now + pause_ - std::chrono::duration_cast<duration>(pause_ * (chance / 2));
    }
    void became_ready() noexcept { deaths_ = 0; }
    void finished_task() noexcept { pause_ = duration(); }
    /// New attempts are counted from now on. The pauses stay.
    void forget_deaths() noexcept { deaths_ = 0; }

    bool is_used_up() const noexcept { return deaths_ >= attempts_; }
    int deaths() const noexcept { return deaths_; }
    bool may_start(time_point now) const noexcept { return next_ <= now; }
    time_point next() const noexcept { return next_; }

private:
    duration first_;
    duration longest_;
    int attempts_;
    int deaths_ = 0;  // in a row, before READY
    duration pause_{};
    time_point next_{};
};

}  // namespace cohort::pools
