// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/runtime/runtime.hpp"
#include "protocol/order/caller.hpp"

#include <cohort/detail/plan.hpp>

namespace cohort::detail::inline v0_1 {

/// Refuses groups that can't be. Called before memory is allocated for the workers, because a wrong
/// number could use up all memory.
/// @throws spawn_error            there are too many workers
/// @throws std::invalid_argument  they share a barrier, and never run all at once
void refuse_impossible(const spawn_plan& plan);

/// Refuses a caller that the starters are less confined than, because its workers would be, too.
/// @param shares_files  whether it shares directory, root and umask with them
/// @throws spawn_error  EPERM, stage "confinement"
void refuse_confined(const base::known_thread& starter, bool shares_files);

/// @throws spawn_error  the program is exiting
void refuse_at_exit(const loop::runtime& runtime);

}  // namespace cohort::detail::inline v0_1
