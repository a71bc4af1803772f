// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

namespace cohort::groups {

/// Sends SIGKILL to the rest of a process group whose leader has been reaped by somebody else, for
/// kernels before 6.9, where only its number says which group it is. Does nothing if the number may
/// be another's by now: if a process has it, or /proc shows no process of this program's session in
/// the group. Reads all of /proc, so it is not for the engine's thread.
void kill_rest_of_group(pid_t leader);

}  // namespace cohort::groups
