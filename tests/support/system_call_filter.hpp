// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <iterator>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::test {

/// From now on the kernel answers system call `number` by `action` (SECCOMP_RET_...), in this
/// thread and in all that it starts. This cannot be undone.
/// @return the result of seccomp(2): a descriptor with SECCOMP_FILTER_FLAG_NEW_LISTENER; -1: this
///         machine does not allow it
inline int filter_calls(long number, unsigned action, unsigned flags = 0) {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{std::size(code), code};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

/// Makes system call `number` fail with `error`. @return false: this machine does not allow it
inline bool deny(long number, int error) {
    return filter_calls(number, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)) == 0;
}

}  // namespace cohort::test
