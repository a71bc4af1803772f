// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "loop/runtime/runtime.hpp"

#include <sys/types.h>

namespace cohort::groups {

/// Sends SIGKILL to the rest of a process group whose leader has been reaped by somebody else, for
/// kernels before 6.9, where only its number says which group it is. Does nothing if the number may
/// be another's by now: if a process has it, or /proc shows no process of this program's session in
/// the group. Reads all of /proc, so it is not for the engine's thread.
void kill_rest_of_group(pid_t leader);

/// Waits until nothing lives in a process group whose leader was reaped and whose other members
/// were killed: a killed process holds its locks, ports and files until it is gone. Called on the
/// engine's thread.
/// @param is_left  whether the group has members, zombies too. Called at once, and then by a timer.
/// @param until    `then` is called then, even if something still lives
/// @param then     called once: at once if nothing is left
void await_rest_of_group(loop::runtime& runtime, pid_t leader, base::callback<bool()> is_left,
                         loop::time_point until, base::callback<void()> then);

}  // namespace cohort::groups
