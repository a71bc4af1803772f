// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "exec/child.hpp"

namespace cohort::exec {

// What the child does with its table of descriptors. Both leave by fail() if they can't.

/// Leaves it with 0, 1, 2, and what the moves need.
void clear_table(child_task& task) noexcept;

/// Makes the moves: those of one order do not disturb each other.
void place_descriptors(child_task& task) noexcept;

}  // namespace cohort::exec
