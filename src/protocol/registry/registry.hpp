// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/record/control.hpp"

#include <cohort/detail/registration.hpp>

#include <chrono>
#include <string>
#include <vector>

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

/// The key of a function of this program: the same in every process that runs it.
protocol::function_key key_of(const detail::function_node& node);

/// The key of a function by its name: the same in other programs that have the function.
protocol::function_key named_key_of(const detail::function_node& node);
bool is_named(const protocol::function_key& key) noexcept;

/// The registered function with this key; null when there is none. The key is only compared: an
/// address from a file is never followed.
const detail::function_node* find(const protocol::function_key& key);

/// The functions that forkserver_preload has named so far, each once, in order.
std::vector<protocol::function_key> preloads();

}  // namespace cohort::protocol
