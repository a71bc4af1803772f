// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "record/control.hpp"

#include <chrono>

namespace cohort::registry {

/// Makes this process a worker with this order: this_worker answers from now on. Also in the
/// copy of a worker that a fork start makes.
void activate(const record::control_order& order);

/// The order of this worker, null outside one.
const record::control_order* current_order() noexcept;

/// How long the group waits between the stop signal and SIGKILL; zero outside a worker.
std::chrono::nanoseconds grace_period() noexcept;

}  // namespace cohort::registry
