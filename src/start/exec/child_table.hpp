// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "start/exec/child.hpp"

namespace cohort::start {

// What the child does with its descriptor table. Both functions end it by fail() if they can't.

/// Closes all but 0, 1, 2, and the descriptors that the moves and the directory need.
void clear_table(child_task& task) noexcept;

/// Makes the moves. No move overwrites the source of another.
void place_descriptors(child_task& task) noexcept;

}  // namespace cohort::start
