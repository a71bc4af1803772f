// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "exec/child.hpp"

#include <atomic>
#include <vector>

namespace cohort::exec {

// From an order to what its child works through.

/// Where the descriptor of each move is: the child changes these when it has to copy one away.
std::vector<int> sources_of(const exec_order& order);
/// The descriptors above stdio that the child needs before it has placed them, ascending, each
/// once.
std::vector<int> kept_by(const exec_order& order);
/// Borrows all three.
child_task task_for(const exec_order& order, std::vector<int>& sources,
                    const std::vector<int>& kept);

/// Takes the pidfd over. A host without stdio gets it at a number where others expect stdio.
void own_pidfd(exec_result& result, int pidfd, std::atomic<int>& pidfd_slot) noexcept;

}  // namespace cohort::exec
