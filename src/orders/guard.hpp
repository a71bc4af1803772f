// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/raw_call.hpp"

#include <cerrno>
#include <cstdint>

#include <sys/socket.h>
#include <sys/syscall.h>

namespace cohort::orders {

enum class guarded : std::int32_t { worker, cgroup };

/// What the guardian is told of one worker, or of the cgroup of a group. The worker's pidfd comes
/// with it, or the cgroup's directory: a number may mean another process by the time when it matters,
/// a pidfd never does.
struct guard_message {
    guarded what = guarded::worker;
    std::int32_t stop_signal = 0;
    std::int32_t grace_ms = 0;  // from the parent's death to SIGKILL; 0: SIGKILL at once
};

/// Where the descriptors of the guardian are when it begins.
inline constexpr int guardian_parent = 3;      // a pidfd of the process that it stands in for
inline constexpr int guardian_connection = 4;  // guard_messages come here
inline constexpr int guardian_program = 5;     // its own program

/// How to tell the guardian. Without a connection nobody is told.
struct guard_order {
    int connection = -1;
    guard_message message;
};

/// One system call, which never blocks: a guardian that was stopped must not stop anybody.
/// @return false: there was no room for it, or the guardian takes nothing more
COHORT_BEFORE_EXEC inline bool tell_guardian(const guard_order& order, int with_it) noexcept {
    if (order.connection < 0)
        return true;
    struct rights {  // a cmsghdr and its data
        unsigned long length = sizeof(cmsghdr) + sizeof(int);
        int level = SOL_SOCKET;
        int type = SCM_RIGHTS;
        int descriptor;
        int padding = 0;
    } with{.descriptor = with_it};
    static_assert(sizeof with == CMSG_SPACE(sizeof with_it));
    iovec part{const_cast<guard_message*>(&order.message), sizeof order.message};
    msghdr message;
    message.msg_name = nullptr;
    message.msg_namelen = 0;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &with;
    message.msg_controllen = sizeof with;
    message.msg_flags = 0;
    const long result = sys::raw_call(SYS_sendmsg, order.connection, sys::address(&message),
                                      MSG_NOSIGNAL | MSG_DONTWAIT);
    return result >= 0;
}

}  // namespace cohort::orders
