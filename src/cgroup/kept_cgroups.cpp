// SPDX-License-Identifier: BSL-1.0
#include "cgroup/kept_cgroups.hpp"

#include "cgroup/cgroup.hpp"
#include "cgroup/group_cgroups.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace cohort::cgroups {

namespace {

using namespace std::chrono_literals;

/// For the end of what has entered a cgroup that nobody uses.
constexpr auto visitor_wait = 100ms;

}  // namespace

std::shared_ptr<group_cgroup> kept_cgroups::keep(std::shared_ptr<group_cgroup> emptied) {
    if (!emptied->reusable() || !emptied->reusable()->check.is_empty())
        return emptied;
    const std::lock_guard lock(mutex_);
    if (is_closed_)
        return emptied;
    kept_.push_back(std::move(emptied));
    if (kept_.size() <= most)
        return nullptr;
    // The oldest: its guardian may be gone.
    auto oldest = std::move(kept_.front());
    kept_.erase(kept_.begin());
    return oldest;
}

std::shared_ptr<group_cgroup> kept_cgroups::take(const cgroup_guard& guard) {
    const std::lock_guard lock(mutex_);
    // Their guardian, which may be there for them alone, needs to hold them no longer.
    const auto others = std::ranges::stable_partition(kept_, [&](const auto& cgroup) {
        return cgroup->reusable()->guard.guardian == guard.guardian;
    });
    std::ranges::move(others, std::back_inserter(unfit_));
    kept_.erase(others.begin(), others.end());
    std::erase_if(unfit_, [](const auto& cgroup) { return cgroup->end(); });
    const auto fits = [&](const auto& cgroup) { return cgroup->reusable()->guard == guard; };
    for (;;) {
        const auto found = std::ranges::find_if(kept_.rbegin(), kept_.rend(), fits);
        if (found == kept_.rend())
            return nullptr;
        auto taken = std::move(*found);
        kept_.erase(std::next(found).base());
        const auto& check = taken->reusable()->check;
        if (check.is_empty() && check.is_unchanged(taken->directory()))
            return taken;
        if (!taken->end())
            unfit_.push_back(std::move(taken));
    }
}

void kept_cgroups::end_all() noexcept {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    std::ranges::move(kept_, std::back_inserter(unfit_));
    kept_.clear();
    for (const auto& cgroup : unfit_) {
        if (cgroup->end())
            continue;
        await_empty_cgroup(cgroup->directory(), visitor_wait);
        cgroup->end();
    }
    unfit_.clear();
}

}  // namespace cohort::cgroups
