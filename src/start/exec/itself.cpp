// SPDX-License-Identifier: BSL-1.0
#include "start/exec/itself.hpp"

#include "base/sys/raw_call.hpp"
#include "start/exec/child.hpp"

#include <cerrno>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

namespace cohort::start {
namespace {

/// Whether the file has a set-ID bit or capabilities; true if that can't be found out.
bool gives_rights(const char* program) noexcept {
    struct stat status {};
    if (::stat(program, &status) != 0 || (status.st_mode & (S_ISUID | S_ISGID)) != 0)
        return true;
    return ::getxattr(program, "security.capability", nullptr, 0) >= 0 ||
           (errno != ENODATA && errno != EOPNOTSUPP);
}

struct user_ids {
    uid_t real = 0;
    uid_t effective = 0;
    uid_t saved = 0;
};

COHORT_BEFORE_EXEC bool gains_no_privileges() noexcept {
    return base::raw_call(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

COHORT_BEFORE_EXEC user_ids ids_by(long call) noexcept {
    user_ids ids;
    base::raw_call(call, base::address(&ids.real), base::address(&ids.effective),
                   base::address(&ids.saved));
    return ids;
}

}  // namespace

protocol::own_program executing_itself(int mark, int file, const char* program) noexcept {
    protocol::own_program own{.mark = mark, .gives_rights = gives_rights(program)};
    struct stat status {};
    if (::fstat(file, &status) == 0) {
        own.owner = status.st_uid;
        own.group = status.st_gid;
    }
    return own;
}

COHORT_BEFORE_EXEC void keep_rights(child_task& task) noexcept {
    const protocol::own_program& own = task.order->itself;
    if (own.mark < 0)
        return;
    task.at = stage::credentials;
    const user_ids user = ids_by(SYS_getresuid);
    const user_ids group = ids_by(SYS_getresgid);
    const bool differ = user.real != user.effective || group.real != group.effective;
    if (differ && (own.gives_rights != 0 || user.real != 0 || gains_no_privileges()))
        fail(task, -EPERM);
    // With no_new_privs the kernel ignores the bits, and the worker knows that exec has given it no
    // rights.
    long result = 0;
    if (own.gives_rights != 0)
        result = base::raw_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
    // Another thread may have changed the user since the file was made. If the real and effective
    // ids are the same, a worker accepts a file of root's too and does not check the file's group.
    const bool is_owned = own.owner == user.effective && (!differ || own.group == group.effective);
    if (result == 0 && !is_owned) {
        result = base::raw_call(SYS_fchown, own.mark, user.effective,
                                differ ? group.effective : static_cast<gid_t>(-1));
        if (result < 0 && own.owner == 0 && !differ)
            result = 0;
    }
    if (result < 0)
        fail(task, result);
}

}  // namespace cohort::start
