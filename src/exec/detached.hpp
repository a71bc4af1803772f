// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "exec/exec.hpp"

namespace cohort::exec {

/// As start_by_exec, but the program is no child of this process: one between the two, that ends at
/// once, is its parent. So the host's wait() never finds it, unless the host takes in orphans.
/// @param between  set when there was one: it must be reaped, by a wait that finds children without
/// an exit signal
std::error_code start_detached(orders::order_block& order, start_tier tier,
                               sys::unique_fd& between);

}  // namespace cohort::exec
