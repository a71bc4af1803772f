// SPDX-License-Identifier: BSL-1.0
#include "calls.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/syscall.h>

namespace faults {

// Left out: calls that can't fail, calls whose failure no caller could handle (close, munmap,
// fstat, prlimit64, waitid with WNOHANG), and calls that the C library expects to succeed (futex).
const std::vector<call>& calls() {
    // clang-format off
    static const std::vector<call> all{
        {"capget", SYS_capget, {EPERM}},
        {"clone", SYS_clone, {EAGAIN, ENOMEM}},
        {"clone3", SYS_clone3, {EAGAIN, ENOMEM}},
        {"close_range", SYS_close_range, {ENOMEM, EMFILE}},
        {"dup", SYS_dup, {EMFILE}},
        {"dup3", SYS_dup3, {EMFILE, EBUSY, EINTR}},
        {"epoll_create1", SYS_epoll_create1, {EMFILE, ENOMEM}},
        {"epoll_ctl", SYS_epoll_ctl, {ENOSPC, ENOMEM}},
        {"epoll_pwait", SYS_epoll_pwait, {EINTR}},
        {"eventfd2", SYS_eventfd2, {EMFILE, ENOMEM}},
        {"execve", SYS_execve, {ENOMEM, EAGAIN, EACCES}},
        {"faccessat", SYS_faccessat, {EACCES}},
        {"faccessat2", SYS_faccessat2, {EACCES}},
        {"fchdir", SYS_fchdir, {EACCES}},
        {"fcntl", SYS_fcntl, {EMFILE, EINTR}},
        {"flock", SYS_flock, {ENOLCK, EINTR, EWOULDBLOCK}},
        {"fstatfs", SYS_fstatfs, {EIO}},
        {"ftruncate", SYS_ftruncate, {ENOSPC, EINTR}},
        {"getcwd", SYS_getcwd, {ENOENT}},
        {"getdents64", SYS_getdents64, {EIO, ENOENT}},
        {"io_uring_enter", SYS_io_uring_enter, {EINTR, EAGAIN, EBUSY}},
        {"io_uring_register", SYS_io_uring_register, {ENOMEM, EINVAL}},
        {"io_uring_setup", SYS_io_uring_setup, {ENOMEM, EMFILE, EPERM}},
        {"ioctl", SYS_ioctl, {ENOTTY}},
        {"memfd_create", SYS_memfd_create, {EMFILE, ENOMEM}},
        {"mkdirat", SYS_mkdirat, {ENOSPC, EACCES}},
        {"mmap", SYS_mmap, {ENOMEM}},
        {"mprotect", SYS_mprotect, {ENOMEM}},
        {"newfstatat", SYS_newfstatat, {ENOMEM}},
        {"openat", SYS_openat, {EMFILE, EINTR, EACCES}},
        {"pidfd_open", SYS_pidfd_open, {EMFILE, ENOMEM}},
        {"pidfd_send_signal", SYS_pidfd_send_signal, {EPERM}},
        {"pipe2", SYS_pipe2, {EMFILE}},
        {"ppoll", SYS_ppoll, {EINTR, ENOMEM}},
        {"prctl", SYS_prctl, {EPERM, EINVAL}},
        {"pread64", SYS_pread64, {EINTR, EIO}},
        {"pwrite64", SYS_pwrite64, {ENOSPC, EINTR}},
        {"read", SYS_read, {EINTR, EIO}},
        {"readlinkat", SYS_readlinkat, {ENOENT}},
        {"recvmsg", SYS_recvmsg, {ENOMEM, EINTR}},
        {"sched_getaffinity", SYS_sched_getaffinity, {EINVAL}},
        {"sched_setaffinity", SYS_sched_setaffinity, {EINVAL}},
        {"sendmsg", SYS_sendmsg, {ENOBUFS, EINTR, EAGAIN}},
        {"setpgid", SYS_setpgid, {EPERM}},
        {"setsid", SYS_setsid, {EPERM}},
        {"setsockopt", SYS_setsockopt, {ENOMEM}},
        {"sigaltstack", SYS_sigaltstack, {ENOMEM}},
        {"signalfd4", SYS_signalfd4, {EMFILE}},
        {"socketpair", SYS_socketpair, {EMFILE, ENOMEM}},
        {"statx", SYS_statx, {ENOMEM}},
        {"timerfd_create", SYS_timerfd_create, {EMFILE}},
        {"timerfd_settime", SYS_timerfd_settime, {EINVAL}},
        {"unlinkat", SYS_unlinkat, {EBUSY, EINTR}},
        {"write", SYS_write, {EINTR}},  // mostly to eventfds
#if defined(SYS_poll)
        {"access", SYS_access, {EACCES}},
        {"dup2", SYS_dup2, {EBUSY, EINTR}},
        {"epoll_wait", SYS_epoll_wait, {EINTR}},
        {"fork", SYS_fork, {EAGAIN}},
        {"mkdir", SYS_mkdir, {ENOSPC, EACCES}},
        {"open", SYS_open, {EMFILE}},
        {"pipe", SYS_pipe, {EMFILE}},
        {"poll", SYS_poll, {EINTR, ENOMEM}},
        {"readlink", SYS_readlink, {ENOENT}},
        {"rmdir", SYS_rmdir, {EBUSY, EINTR}},
        {"stat", SYS_stat, {ENOMEM}},
        {"unlink", SYS_unlink, {EBUSY}},
        {"vfork", SYS_vfork, {EAGAIN}},
#endif
    };
    // clang-format on
    return all;
}

const call* find_call(long number) {
    const auto found = std::ranges::find(calls(), number, &call::number);
    return found == calls().end() ? nullptr : &*found;
}

const call* find_call(std::string_view name) {
    const auto found = std::ranges::find(calls(), name, &call::name);
    return found == calls().end() ? nullptr : &*found;
}

}  // namespace faults
