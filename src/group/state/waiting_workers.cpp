// SPDX-License-Identifier: BSL-1.0
#include "group/state/waiting_workers.hpp"

#include <utility>

namespace cohort::groups {

namespace {

/// How many workers are dropped in one turn of the loop, so that no deadline waits for more.
constexpr int most_dropped_at_once = 500;

}  // namespace

void waiting_workers::start_next() {
    if (order_.is_closed())
        return;
    while (const auto next = order_.take_next())
        starts_.start_later(*next, 0);
    shown_.set_waiting(order_.waiting());
    if (order_.waiting() == 0)
        starts_.close_later_starts();
}

void waiting_workers::place_is_free() {
    order_.give_back_place();
    if (starts_.starts_later())
        start_next();
}

void waiting_workers::drop(std::shared_ptr<const void> group, base::callback<void(int)> dropped) {
    order_.close();
    shown_.set_waiting(0);
    for (int count = 0; count < most_dropped_at_once; ++count) {
        const auto next = order_.drop_next();
        if (!next)
            return;
        dropped(*next);
    }
    loop_.post(
        [this, group = std::move(group), dropped = std::move(dropped)] { drop(group, dropped); });
}

}  // namespace cohort::groups
