// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/lifecycle/machine.hpp"
#include "loop/runtime/runtime.hpp"

#include <deque>
#include <memory>
#include <optional>

namespace cohort::groups {

/// How long exit() waits for a group with these settings at most.
duration longest_stop(const detail::group_settings& settings);

/// How long the steps may last when the program exits. @param limit  of each step
step_spans spans_at_exit(const detail::group_settings& settings, duration limit);

/// Hands events to the lifecycle of a group, has its answers performed, and wakes it at its
/// deadline. A member of the group's state; belongs to the engine's thread.
class lifecycle_driver {
public:
    lifecycle_driver(loop::runtime& runtime, const detail::group_settings& settings);

    /// Before the first event. The group's time limit counts from here.
    /// @param group    kept while events are handled and until the deadline
    /// @param perform  performs an action; may call happen()
    void begin(std::weak_ptr<const void> group, base::callback<void(action)> perform);

    machine& life() noexcept { return machine_; }
    const machine& life() const noexcept { return machine_; }

    /// Hands an event to the lifecycle and performs the actions that it answers with. Does the same
    /// for the events that these actions cause.
    void happen(event e);
    /// Stops the group, with no step longer than `longest` says.
    void stop_within(const step_spans& longest);

private:
    void arm_deadline();

    loop::runtime& runtime_;
    machine machine_;
    std::weak_ptr<const void> group_;
    base::callback<void(action)> perform_;
    std::deque<event> events_;
    std::optional<loop::timer_id> deadline_;
};

}  // namespace cohort::groups
