// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace cohort::loop {

using time_point = std::chrono::steady_clock::time_point;

/// Names a timer by its deadline and a number, so that equal deadlines keep the order of the calls.
using timer_id = std::pair<time_point, std::uint64_t>;

/// The deadlines of all groups in one order. No clock: `now` is a parameter.
class timers {
public:
    timer_id at(time_point deadline, base::callback<void()> then) {
        timer_id id(deadline, ++last_);
        queue_.emplace(id, std::move(then));
        return id;
    }
    /// Has no effect on a timer that has run.
    void cancel(const timer_id& id) { queue_.erase(id); }

    std::optional<time_point> next() const {
        if (queue_.empty())
            return std::nullopt;
        return queue_.begin()->first.first;
    }

    /// Runs the timers that are due at `now`; one that is set meanwhile waits for the next call.
    void run(time_point now) {
        const std::uint64_t known = last_;
        auto due = queue_.begin();
        while (due != queue_.end() && due->first.first <= now) {
            if (due->first.second > known) {
                ++due;
                continue;
            }
            auto then = std::move(due->second);
            queue_.erase(due);
            then();
            due = queue_.begin();
        }
    }

private:
    std::map<timer_id, base::callback<void()>> queue_;
    std::uint64_t last_ = 0;
};

}  // namespace cohort::loop
