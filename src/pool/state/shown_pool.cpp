// SPDX-License-Identifier: BSL-1.0
#include "pool/state/shown_pool.hpp"

#include <cohort/detail/plan.hpp>

#include <algorithm>

namespace cohort::pools {

pool_stats shown_pool::stats() const {
    std::unique_lock lock(mutex_);
    pool_stats now = stats_;
    const counts counted = counted_;
    lock.unlock();
    now.waiting = waiting_;
    now.done = counted.done;
    now.failed = counted.failed;
    now.lost = counted.lost;
    now.replaced = counted.replaced;
    now.recycled = counted.recycled;
    now.waited = counted.waited;
    now.longest_wait = counted.longest_wait;
    now.ran = counted.ran;
    now.longest_run = counted.longest_run;
    return now;
}

std::vector<pool_worker> shown_pool::workers() const {
    std::unique_lock lock(mutex_);
    const auto shown = workers_;
    lock.unlock();
    std::vector<pool_worker> all;
    all.reserve(shown.size());
    for (const auto& [id, each] : shown)
        all.push_back({each.slot, each.pid, each.state,
                       each.function ? detail::function_name(each.function) : std::string(),
                       each.since, each.tasks, each.memory});
    std::ranges::stable_sort(all, {}, &pool_worker::slot);
    return all;
}

}  // namespace cohort::pools
