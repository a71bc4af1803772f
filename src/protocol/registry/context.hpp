// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/record/control.hpp"

#include <chrono>
#include <string>

namespace cohort::protocol {

/// Makes this process a worker with this order: from now on this_worker answers by it, and by what
/// COHORT_HOST is now, because the program may change its environment. Also called in a forked copy
/// of a worker, where it replaces that worker's order.
void activate(const protocol::control_order& order);

/// The order of this worker; null outside a worker.
const protocol::control_order* current_order() noexcept;

/// The host of this worker, by the name that its group has for it; empty in a local group, and
/// outside a worker.
std::string current_host();

/// How long the group waits between the stop signal and SIGKILL; zero outside a worker.
std::chrono::nanoseconds grace_period() noexcept;

}  // namespace cohort::protocol
