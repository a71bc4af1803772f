// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/options.hpp>

// Sees that two attempts of one worker never live at the same time: each attempt locks the part of
// a file that belongs to its worker.
namespace chaos {

/// Gives the workers of a group that are started again the file with the locks.
void give_locks(cohort::options& how);

/// Called in such a worker: takes the lock of its index, which its end gives back. If an earlier
/// attempt still has it, the test is told.
void lock_index(int index);

}  // namespace chaos
