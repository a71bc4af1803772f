// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "start/exec/exec.hpp"

#include <chrono>
#include <system_error>

namespace cohort::start {

/// Like start_by_exec(), but the program is not a child of this process: its parent is an
/// intermediate process, which ends at once. So the host's wait() never finds the program, unless
/// the host adopts orphans.
/// @param longest       if the program is not executed by then, both are killed: ETIMEDOUT
/// @param intermediate  the pidfd of the intermediate process, if there was one. It must be reaped,
///                      by a wait that finds children without an exit signal
std::error_code start_detached(protocol::order_block& order, start_tier tier,
                               std::chrono::milliseconds longest, base::unique_fd& intermediate);

}  // namespace cohort::start
