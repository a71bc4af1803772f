// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/unique_fd.hpp"

#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

namespace cohort::sys {

/// The two ends of a local connection that keeps messages whole. Both are close-on-exec and
/// numbered 3 or higher.
[[nodiscard]] std::error_code make_socket_pair(unique_fd& one, unique_fd& other) noexcept;

/// How many descriptors one message can carry: SCM_MAX_FD.
inline constexpr std::size_t most_descriptors = 253;

/// Sends one message, and copies of descriptors with it. EPIPE: the other end is gone; never
/// SIGPIPE.
[[nodiscard]] std::error_code send_message(int socket, std::span<const std::byte> bytes,
                                           std::span<const int> descriptors) noexcept;

enum class waiting { block, nonblock };
/// Receives one message, cut to `buffer`; its descriptors are close-on-exec.
/// @param length  of the message; 0 at the end of the connection
/// @return EMFILE: there was no room for all of the descriptors. EAGAIN, with `nonblock`: there is
///         no message.
[[nodiscard]] std::error_code receive_message(int socket, std::span<std::byte> buffer,
                                              std::size_t& length,
                                              std::vector<unique_fd>& descriptors, waiting how);

}  // namespace cohort::sys
