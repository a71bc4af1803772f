// SPDX-License-Identifier: BSL-1.0
#include "group/state/lifecycle_driver.hpp"

#include <chrono>
#include <utility>

namespace cohort::groups {

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
        for (auto a : base::patiently([&] { return machine_.on(events_.front(), now); }))
            perform_(a);
        events_.pop_front();
    }
    arm_deadline();
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
