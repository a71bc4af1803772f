// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "orders/worker_order.hpp"

namespace cohort::exec {

struct child_task;

/// What the child needs for the execution of this very program.
/// @param mark  the child's descriptor
/// @param file  the same file in this process
orders::own_program executing_itself(int mark, int file) noexcept;

/// The child's part, right before exec: the last of its steps. Fails with EPERM where the new
/// program would have other rights than this process, or would refuse the mark:
///  - The real and the effective user (or group) differ. Only root may start workers as another
///    user in that way, only by a program that gives no rights, and not with no_new_privs, with
///    which exec makes the real user the effective one.
///  - The file can't be given to the effective user, where a worker asks for that.
void keep_rights(child_task& task) noexcept;

}  // namespace cohort::exec
