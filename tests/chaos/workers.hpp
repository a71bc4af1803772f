// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"

#include <cohort/spawn.hpp>

#include <asio/awaitable.hpp>

namespace chaos {

/// Starts one group of a tree. `levels` counts the levels from this one on.
asio::awaitable<cohort::group> start_group(group_plan plan, int levels, limits allowed);

}  // namespace chaos
