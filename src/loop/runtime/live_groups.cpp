// SPDX-License-Identifier: BSL-1.0
#include "loop/runtime/live_groups.hpp"

#include <algorithm>
#include <future>
#include <memory>
#include <utility>

namespace cohort::loop {

using namespace std::chrono_literals;

void live_groups::remove(live_group& group) {
    groups_.erase(&group);
    report_when_empty();
}

void live_groups::report_when_empty() {
    if (!groups_.empty())
        return;
    for (auto& report : std::exchange(when_empty_, {}))
        report();
}

void live_groups::stop_all_and_wait(std::chrono::steady_clock::duration limit) {
    // The ladder has two steps; the second takes at least a second.
    const auto longest = limit < 12h ? 2 * limit + 1s : 24h;
    const auto until = std::chrono::steady_clock::now() +
                       std::min<std::chrono::steady_clock::duration>(spans_.longest(), longest);
    auto ended = std::make_shared<std::promise<void>>();
    loop_.post([this, limit, ended] {
        const auto groups = groups_;  // a copy, because a group that ends at once leaves the set
        for (auto* group : groups)
            group->stop_within(limit);
        when_empty_.push_back([ended] { ended->set_value(); });
        report_when_empty();
    });
    ended->get_future().wait_until(until);
}

}  // namespace cohort::loop
