// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <optional>

namespace cohort::groups {

/// Which worker of a group starts next, if only some may run at once: those that wait start in the
/// order of their index, each when a place is free. No clock, no system calls.
class schedule {
public:
    /// The first workers take their places at once.
    /// @param at_once  how many workers may run; 0: all
    schedule(int workers, int at_once) noexcept
        : workers_(workers), next_(at_once == 0 ? workers : std::min(workers, at_once)) {}

    /// How many workers start with the group: 0 to first() - 1.
    static int first(int workers, int at_once) noexcept {
        return at_once == 0 ? workers : std::min(workers, at_once);
    }
    /// How many wait for a place.
    int waiting() const noexcept { return workers_ - next_; }

    /// Gives a free place to the next worker. @return none: there is no place, or nobody waits
    std::optional<int> take_next() noexcept {
        if (free_ == 0 || is_closed_ || waiting() == 0)
            return std::nullopt;
        --free_;
        return next_++;
    }
    /// A worker has ended, or could not be started.
    void give_back_place() noexcept { ++free_; }

    /// Nobody takes a place any more.
    void close() noexcept { is_closed_ = true; }
    bool is_closed() const noexcept { return is_closed_; }
    /// @return a worker that waits, and from now on does not; none: nobody does
    std::optional<int> drop_next() noexcept {
        return waiting() == 0 ? std::nullopt : std::optional(next_++);
    }

private:
    const int workers_;
    int next_;
    int free_ = 0;
    bool is_closed_ = false;
};

}  // namespace cohort::groups
