// SPDX-License-Identifier: BSL-1.0
#include "filter.hpp"

#include "calls.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace faults {

namespace {

std::vector<sock_filter> make_filter() {
    std::vector<sock_filter> filter{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, channel_number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    };
    for (const auto& one : calls()) {
        filter.push_back(
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(one.number), 0, 1));
        filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
    }
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    return filter;
}

/// Filters all threads. If the kernel knows wait_killable, signals do not make calls repeat.
int listen(sock_fprog& program) {
    constexpr unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC |
                                    SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    constexpr unsigned long wait_killable = 1UL << 5;  // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
    long listener =
        ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | wait_killable, &program);
    if (listener < 0 && errno == EINVAL)
        listener = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return static_cast<int>(listener);
}

int send_descriptor(int fd) {
    char text[] = "listener";
    iovec part{text, sizeof text - 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    return ::sendmsg(channel_number, &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

}  // namespace

int install_filter() {
    auto filter = make_filter();
    sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return errno;
    const int listener = listen(program);
    if (listener < 0)
        return errno;
    const int error = send_descriptor(listener);
    ::close(listener);
    return error;
}

}  // namespace faults
