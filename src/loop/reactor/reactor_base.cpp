// SPDX-License-Identifier: BSL-1.0
#include "loop/reactor/reactor_base.hpp"

namespace cohort::loop {

namespace {

std::optional<std::chrono::nanoseconds> time_left(std::optional<time_point> until) {
    if (!until)
        return std::nullopt;
    const auto now = std::chrono::steady_clock::now();
    // Compared before subtracting: the difference to a point far in the past would overflow.
    return *until > now ? *until - now : std::chrono::nanoseconds::zero();
}

}  // namespace

void reactor_base::wait(std::optional<time_point> until, std::vector<event>& events) {
    constexpr std::chrono::nanoseconds none{0};
    const bool may_block = wake_.fall_asleep() && ready_.empty();
    auto left = may_block ? time_left(until) : none;
    for (;;) {
        collect(left);
        if (left == none || !ready_.empty() || wake_.called())
            break;
        // collect() returned early: by a signal, by a late write of an earlier wake(), or because
        // the kernel cancelled a poll unasked.
        left = time_left(until);
        if (left == none)
            break;
    }
    events.reserve(events.size() + ready_.size());
    events.insert(events.end(), ready_.begin(), ready_.end());
    ready_.clear();
    wake_.get_up();
}

}  // namespace cohort::loop
