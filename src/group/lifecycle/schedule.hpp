// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <set>

namespace cohort::groups {

/// Which worker of a group starts next: one that starts again, the lowest index first, else the
/// next one that has never started. If only some may run at once, each waits for a free place. One
/// that has to wait for room for what it prints lets the others pass. No clock, no system calls.
class schedule {
public:
    /// The first workers take their places at once.
    /// @param at_once  how many workers may run; 0: all
    schedule(int workers, int at_once) noexcept
        : workers_(workers), next_(first(workers, at_once)) {}

    /// How many workers start with the group: 0 to first() - 1.
    static int first(int workers, int at_once) noexcept {
        return at_once == 0 ? workers : std::min(workers, at_once);
    }
    /// How many wait for their start.
    int waiting() const noexcept {
        return workers_ - next_ + resting_ + static_cast<int>(again_.size() + for_room_.size());
    }

    /// A worker has ended, and may start again later.
    void rest() noexcept { ++resting_; }
    /// A worker that rests is to start again.
    void start_again(int index) {
        --resting_;
        again_.insert(index);
    }
    /// Workers that rest will not start again.
    void end_rest() noexcept { --resting_; }

    /// Who gets a free place next. @return as take_next()
    std::optional<int> peek_next() const noexcept {
        if (!may_start())
            return std::nullopt;
        if (!again_.empty())
            return *again_.begin();
        return next_ == workers_ ? std::nullopt : std::optional(next_);
    }
    /// Gives a free place to the next worker. @return none: there is no place, nobody waits for
    /// one, or starts are held up
    std::optional<int> take_next() {
        const auto next = peek_next();
        if (next) {
            --free_;
            (void)drop(*next);
        }
        return next;
    }
    /// The next worker waits for room, behind those that do already, and lets the others pass.
    void put_aside() { for_room_.push_back(drop(*peek_next())); }
    /// Who has waited longest for room, and has a place now. @return none: nobody does
    std::optional<int> peek_aside() const {
        return may_start() && !for_room_.empty() ? std::optional(for_room_.front()) : std::nullopt;
    }
    /// Gives a free place to that worker.
    void take_aside() {
        --free_;
        for_room_.pop_front();
    }
    /// A worker has ended, or could not be started.
    void give_back_place() noexcept { ++free_; }

    /// Whether nobody takes a place for now.
    void hold_up(bool on) noexcept { is_held_up_ = on; }
    /// Nobody takes a place any more.
    void close() noexcept { is_closed_ = true; }
    bool is_closed() const noexcept { return is_closed_; }
    /// @return a worker that waits for its start, and from now on does not; none: nobody does
    std::optional<int> drop_next() {
        if (!again_.empty())
            return drop(*again_.begin());
        if (next_ != workers_)
            return drop(next_);
        if (for_room_.empty())
            return std::nullopt;
        const int index = for_room_.front();
        for_room_.pop_front();
        return index;
    }

private:
    bool may_start() const noexcept { return free_ > 0 && !is_closed_ && !is_held_up_; }
    /// @param index  the first of those that start again, or else the next that never has
    int drop(int index) {
        if (again_.erase(index) == 0)
            ++next_;
        return index;
    }

    const int workers_;
    int next_;                  // that has never started
    std::set<int> again_;       // these wait for a place
    std::deque<int> for_room_;  // these were put aside
    int resting_ = 0;
    int free_ = 0;
    bool is_held_up_ = false;
    bool is_closed_ = false;
};

}  // namespace cohort::groups
