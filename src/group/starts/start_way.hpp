// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/starts/start_plan.hpp"
#include "group/starts/start_report.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace cohort::groups {

/// A way to start the workers of one group. Belongs to the starter thread. Borrows the plan.
class start_way {
public:
    virtual ~start_way() = default;
    /// Makes what this way itself needs. Called once, before the first start.
    virtual std::optional<start_failure> prepare() { return std::nullopt; }
    /// Starts worker `index`; those before it have been started. As soon as the child exists its
    /// pidfd is in `report`, so that an exception does not lose the child.
    virtual void start(int index, start_slots& slots, start_report& report) = 0;
    /// Called after the last start: kills the workers that were asked for but not reported.
    /// @return all of them; they may live for a moment, and may have children
    virtual std::vector<unwanted_child> withdraw(start_slots&) { return {}; }
};

/// Each worker is a copy of the fork server, which makes it.
std::unique_ptr<start_way> served_start(start_plan& plan);

/// The way that the plan asks for. Without a server this process executes a program or copies
/// itself.
std::unique_ptr<start_way> way_of(start_plan& plan);

}  // namespace cohort::groups
