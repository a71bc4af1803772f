// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>

#include <chrono>
#include <deque>
#include <map>
#include <optional>

namespace cohort::groups {

/// Decides whether a worker starts again, and after which pause: a table of what has happened, no
/// clock, no system calls, no chance of its own.
class restart_policy {
public:
    using time_point = std::chrono::steady_clock::time_point;
    using duration = std::chrono::steady_clock::duration;

    /// @param how  empty: nobody starts again
    explicit restart_policy(std::optional<detail::restart_settings> how) : how_(std::move(how)) {}

    bool is_on() const noexcept { return how_.has_value(); }
    bool is_of_all() const noexcept { return how_ && how_->scope == restart_scope::all; }
    /// Whether another attempt is wanted after such an end.
    bool wants(bool success) const noexcept {
        return how_ && (!success || how_->after == restart_on::always);
    }

    /// The end of an attempt.
    struct end {
        int index = 0;
        time_point started;
        time_point ended;
        double chance = 0.5;  // 0 to 1: decides the length of the pause, see restarts::jitter
    };
    /// Counts another attempt after this end. With restart_scope::all the workers count together.
    /// @return the pause before it; none: no restart is left
    std::optional<duration> next(const end& of);

private:
    struct history {
        int count = 0;                             // of restarts, if all count
        std::deque<time_point> restarts;           // those of the span, if only these count
        duration pause{0};                         // the last one, without chance
    };

    bool is_left(history& of, time_point now) const;
    duration pause_after(history& of, const end& last) const;

    std::optional<detail::restart_settings> how_;
    std::map<int, history> histories_;  // by index
};

}  // namespace cohort::groups
