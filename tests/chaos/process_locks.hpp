// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/options.hpp>

namespace chaos {

/// Gives workers a file for lock_byte() as descriptor `number`.
void give_lock_file(cohort::options& how, int number);

/// Locks a byte of that file for the life of this process. Such a lock stays over execve, is not
/// inherited by children, and goes before the exit of its process is told: fcntl(2).
/// @return false: another process has it
bool lock_byte(int number, int at);

}  // namespace chaos
