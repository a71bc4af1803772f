// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/raw_call.hpp"

#include <cerrno>
#include <cstdint>
#include <type_traits>

#include <sys/socket.h>
#include <sys/syscall.h>

namespace cohort::protocol {

enum class guarded : std::int32_t { worker, cgroup, names };

/// A message to the guardian about one worker, about a group's cgroup, or about the names of shared
/// memory. A descriptor comes with it: the worker's pidfd, the cgroup's directory, or /dev/shm. A
/// pid alone would not do, because it may mean another process when the guardian acts; a pidfd
/// never does.
struct guard_message {
    guarded what = guarded::worker;
    std::int32_t stop_signal = 0;
    std::int32_t grace_ms = 0;  // from the parent's death to SIGKILL; 0: SIGKILL at once

    // Only of workers.
    std::int32_t by_number = 0;       // 1: the kernel can't signal a process group by a pidfd
    std::int32_t leader = 0;          // by_number: the worker's pid
    std::int32_t leader_session = 0;  // by_number: the session of the worker's process group

    std::uint64_t session = 0;  // only of names: they have it in common
};
static_assert(std::has_unique_object_representations_v<guard_message>);

/// Adds the numbers by which the guardian finds a worker's process group, if it needs them. Called
/// when the worker leads its group.
COHORT_BEFORE_EXEC inline void add_numbers(guard_message& message, long leader) noexcept {
    if (message.by_number == 0)
        return;
    message.leader = static_cast<std::int32_t>(leader);
    message.leader_session = static_cast<std::int32_t>(base::raw_call(SYS_getsid, leader));
}

/// The numbers of the guardian's descriptors when it begins.
inline constexpr int guardian_parent = 3;      // a pidfd of the application
inline constexpr int guardian_connection = 4;  // guard_messages come here
inline constexpr int guardian_program = 5;     // the file of its own program

/// A message to the guardian, and the connection to send it on; -1: no message is sent.
struct guard_order {
    int connection = -1;
    guard_message message;
};

/// Sends the message by one system call, which never blocks, because a guardian that is stopped
/// must not block the senders.
/// @param with_it  the descriptor that goes with the message
/// @return false: the socket was full, or the guardian takes no more messages
COHORT_BEFORE_EXEC inline bool notify_guardian(const guard_order& order, int with_it) noexcept {
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
    const long result = base::raw_call(SYS_sendmsg, order.connection, base::address(&message),
                                       MSG_NOSIGNAL | MSG_DONTWAIT);
    return result >= 0;
}

}  // namespace cohort::protocol
