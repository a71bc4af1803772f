// SPDX-License-Identifier: BSL-1.0
#include "group/state/lifecycle_driver.hpp"

#include "group/lifecycle/schedule.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace cohort::groups {

namespace {

using namespace std::chrono_literals;

/// exit() waits at least this long for SIGKILL to act, even if kill_timeout is zero.
constexpr auto shortest_kill_wait = 1s;

rules rules_of(const detail::group_settings& s) {
    rules r;
    r.notice_period = s.notice_period;
    r.grace_period = s.grace_period;
    r.kill_timeout = s.kill_timeout;
    r.policy = s.policy;
    r.time_limit = s.time_limit;
    return r;
}

}  // namespace

duration longest_stop(const detail::group_settings& s) {
    const auto kill = std::max<duration>(s.kill_timeout, shortest_kill_wait);
    auto longest = detail::saturating_add(time_point() + s.grace_period, kill);
    // The streams are flushed; with logs a worker's error and the report are written after that.
    for (int flush = 0; flush < (s.logs ? 3 : 1); ++flush)
        longest = detail::saturating_add(longest, s.flush_timeout);
    return longest.time_since_epoch();
}

step_spans spans_at_exit(const detail::group_settings& s, duration limit) {
    return {limit, s.daemon ? duration::zero() : limit, limit};
}

lifecycle_driver::lifecycle_driver(loop::runtime& runtime, const detail::group_settings& settings)
    : runtime_(runtime),
      machine_(rules_of(settings), schedule(settings.nprocs, settings.at_once).waiting()) {}

void lifecycle_driver::begin(std::weak_ptr<const void> group,
                             base::callback<void(action)> perform) {
    group_ = std::move(group);
    perform_ = std::move(perform);
    machine_.begin(clock::now());
    arm_deadline();
}

void lifecycle_driver::happen(event e) {
    events_.push_back(e);
    if (events_.size() > 1)
        return;  // called from inside the loop below
    const auto keep = group_.lock();
    while (!events_.empty()) {
        const auto now = clock::now();
        for (auto a : machine_.on(events_.front(), now))
            perform_(a);
        events_.pop_front();
    }
    arm_deadline();
}

void lifecycle_driver::stop_within(const step_spans& longest) {
    machine_.shorten(longest, clock::now());
    happen(event::stop_asked);
}

void lifecycle_driver::arm_deadline() {
    if (deadline_)
        runtime_.loop().timer().cancel(*std::exchange(deadline_, std::nullopt));
    if (const auto at = machine_.deadline())
        deadline_ = runtime_.loop().timer().at(*at, [this, keep = group_.lock()] {
            deadline_.reset();
            happen(event::deadline);
        });
}

}  // namespace cohort::groups
