// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

namespace cohort::exec {

struct child_task;

/// What matters where the program that is executed is this process' own one, as a worker or as the
/// fork server. Such a program takes its mark only from its own user, and it must not gain rights
/// that this process does not have (any more).
struct own_program {
    int mark = -1;    // the child's descriptor that the mark names; -1: another program is executed
    uid_t owner = 0;  // of that file
    gid_t group = 0;
    bool gives_rights = false;  // its file has a set-user-ID or set-group-ID bit, or capabilities
};

/// @param mark  the child's descriptor
/// @param file  the same file in this process
own_program executing_itself(int mark, int file) noexcept;

/// The child's part, right before exec: the last of its steps. Fails with EPERM where the new
/// program would have other rights than this process, or would refuse the mark:
///  - The real and the effective user (or group) differ. Only root may start workers as another
///    user in that way, only by a program that gives no rights, and not with no_new_privs, with
///    which exec makes the real user the effective one.
///  - The file can't be given to the effective user, where a worker asks for that.
void keep_rights(child_task& task) noexcept;

}  // namespace cohort::exec
