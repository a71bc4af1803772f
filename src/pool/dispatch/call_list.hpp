// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/duration.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace cohort::pools {

using time_point = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;

/// The end of a length of time, which may have no end.
inline time_point later(time_point from, duration length) noexcept {
    return detail::saturating_add(from, length);
}

/// The number of a call. Later calls have higher numbers.
using call_id = std::uint64_t;

/// The calls that wait for a worker, in the order in which they came.
class call_list {
public:
    struct waiting_call {
        time_point since;                 // when it came
        std::optional<time_point> until;  // how long it may wait
        std::optional<duration> run;      // how long it may run
    };

    /// A call that no worker has taken comes back to its old place.
    void add(call_id call, const waiting_call& how) {
        calls_.emplace(call, how);
        if (how.until)
            limits_.emplace(*how.until, call);
    }
    /// @return whether it was here
    bool remove(call_id call) {
        const auto found = calls_.find(call);
        if (found == calls_.end())
            return false;
        forget(found);
        return true;
    }
    std::optional<std::pair<call_id, waiting_call>> take_first() {
        if (calls_.empty())
            return std::nullopt;
        const std::pair<call_id, waiting_call> first = *calls_.begin();
        forget(calls_.begin());
        return first;
    }
    /// A call that may wait no longer.
    std::optional<call_id> take_due(time_point now) {
        if (limits_.empty() || limits_.begin()->first > now)
            return std::nullopt;
        const call_id due = limits_.begin()->second;
        remove(due);
        return due;
    }

    /// When the next call may wait no longer.
    std::optional<time_point> deadline() const {
        return limits_.empty() ? std::nullopt : std::optional(limits_.begin()->first);
    }
    std::size_t size() const noexcept { return calls_.size(); }
    bool empty() const noexcept { return calls_.empty(); }

private:
    using calls = std::map<call_id, waiting_call>;

    void forget(calls::iterator which) {
        if (which->second.until)
            limits_.erase({*which->second.until, which->first});
        calls_.erase(which);
    }

    calls calls_;
    std::set<std::pair<time_point, call_id>> limits_;
};

}  // namespace cohort::pools
