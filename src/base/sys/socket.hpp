// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include <sys/types.h>

namespace cohort::base {

/// The two ends of a local connection that keeps messages whole. Both are close-on-exec and
/// numbered 3 or higher.
[[nodiscard]] std::error_code make_socket_pair(unique_fd& one, unique_fd& other) noexcept;

/// Whether a descriptor, which may come from any process, is a socket as make_socket_pair() makes
/// them. Asks nothing that could wait.
[[nodiscard]] bool is_packet_socket(int fd) noexcept;

/// How many descriptors one message can carry: SCM_MAX_FD.
inline constexpr std::size_t most_descriptors = 253;

/// Sends one message, and copies of descriptors with it. EPIPE: the other end is gone; never
/// SIGPIPE.
[[nodiscard]] std::error_code send_message(int socket, std::span<const std::byte> bytes,
                                           std::span<const int> descriptors) noexcept;

/// Sends one message of two parts like send_message(), but never waits.
/// @return EAGAIN: the socket is full. ETOOMANYREFS: this user has too many descriptors in flight
[[nodiscard]] std::error_code send_parts(int socket, std::span<const std::byte> head,
                                         std::span<const std::byte> body,
                                         std::span<const int> descriptors) noexcept;

/// Has messages that arrive at this socket say which process has sent them.
[[nodiscard]] std::error_code report_sender(int socket) noexcept;
/// Has messages at this socket say nothing beside what was sent. For sockets that come from other
/// processes, which may have asked for a descriptor of the sender with each message.
void report_nothing(int socket) noexcept;

enum class waiting {
    block,
    nonblock,
    peek,  // does not wait either, and leaves the message in the socket
};
/// Receives one message, cut to `buffer`; its descriptors are close-on-exec and
/// numbered 3 or higher, unless an error is returned.
/// @param length  of the message; 0 at the end of the connection
/// @param sender  if not null, who has sent the message, see report_sender(); 0: unknown
/// @return EMFILE: there was no room for all of the descriptors. EBADMSG: something unknown came
///         with the message. EAGAIN, unless it may wait: there is no message.
[[nodiscard]] std::error_code receive_message(int socket, std::span<std::byte> buffer,
                                              std::size_t& length,
                                              std::vector<unique_fd>& descriptors, waiting how,
                                              pid_t* sender = nullptr);

/// Looks at the beginning of the next message, which stays as it is. Never waits.
/// @return EAGAIN: there is no message
[[nodiscard]] std::error_code peek(int socket, std::span<std::byte> buffer,
                                   std::size_t& length) noexcept;
/// Takes the next message, if there is one, and lets the kernel close what came with it.
void drop_message(int socket) noexcept;

/// One more owner of an open file: a thread that has a descriptor table of its own and ends when
/// this object is destroyed. While this object lives, a close(2) of the file is not the last one.
/// The last one then comes in the end of that thread. There no socket lingers for its peer, neither
/// the file itself nor one that is on its way inside it, which nobody can reach to ask it not to.
class exiting_owner {
public:
    /// Owns nothing if the descriptor is none, or if such a thread can't be made here.
    explicit exiting_owner(int descriptor) noexcept;
    exiting_owner(const exiting_owner&) = delete;
    exiting_owner& operator=(const exiting_owner&) = delete;
    ~exiting_owner();
    /// Whether it owns the file.
    explicit operator bool() const noexcept;

private:
    struct shared;
    std::shared_ptr<shared> shared_;  // null: there is no thread
};

}  // namespace cohort::base
