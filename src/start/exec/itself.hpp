// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/order/worker_order.hpp"

namespace cohort::start {

struct child_task;

/// What the child must know to execute this process' own program, or another one that takes a mark.
/// @param mark     the descriptor that the mark names, in the child
/// @param file     the same file's descriptor in this process
/// @param program  the path of the program's file
protocol::own_program executing_itself(int mark, int file,
                                       const char* program = "/proc/thread-self/exe") noexcept;

/// The child's last step before exec. Fails with EPERM if the new program would have other rights
/// than this process, or would refuse the mark:
///  - The real and the effective user (or group) differ. Only root may start workers as another
///    user in that way, and only by a program that gives no rights. It must not have no_new_privs
///    set, because then exec sets the effective user to the real one.
///  - The marked file can't be given to the effective user, and the worker would check its owner.
void keep_rights(child_task& task) noexcept;

}  // namespace cohort::start
