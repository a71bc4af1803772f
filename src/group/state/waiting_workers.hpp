// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "group/lifecycle/schedule.hpp"
#include "group/state/snapshot.hpp"
#include "group/state/start_in_progress.hpp"

#include <memory>

namespace cohort::groups {

/// The workers of a group that wait until others have ended, because only some may run at once. A
/// member of the group's state; belongs to the engine's thread.
class waiting_workers {
public:
    waiting_workers(loop::engine& loop, schedule order, start_in_progress& starts, snapshot& shown)
        : loop_(loop), order_(order), starts_(starts), shown_(shown) {
        shown_.set_waiting(order_.waiting());
    }

    /// Starts as many as may run now. Called when those that start with the group have started.
    void start_next();
    /// A worker has left nothing that takes descriptors here, or could not be started.
    void place_is_free();
    /// Starts nobody any more.
    /// @param group    kept until all are dropped, which may take several turns of the loop
    /// @param dropped  called for each that waits
    void drop(std::shared_ptr<const void> group, base::callback<void(int)> dropped);

private:
    loop::engine& loop_;
    schedule order_;
    start_in_progress& starts_;
    snapshot& shown_;
};

}  // namespace cohort::groups
