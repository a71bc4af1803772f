// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

namespace cohort::base {

// A message carries at most 253 descriptors (SCM_MAX_FD). More of them travel inside a socket that
// is sent as one descriptor itself.

/// Puts copies of descriptors into a new socket. @return what to send; if it is dropped on the way,
/// the kernel closes all that is inside
[[nodiscard]] base::unique_fd pack(std::span<const int> descriptors,
                                   std::error_code& error) noexcept;

/// Takes the descriptors out of what pack() returned, and appends them.
/// @return EMFILE: there was no room for all of them, and the others are still inside. EPROTO:
///         there are fewer than `count`
[[nodiscard]] std::error_code unpack(int carrier, std::size_t count,
                                     std::vector<base::unique_fd>& descriptors);

/// unpack() for a carrier of a process that is not trusted. That process may have kept the carrier
/// and receive from it into memory that never comes (userfaultfd(2), FUSE); every other receive
/// waits for it then, uninterruptibly. So the receive is on another thread.
/// @param carrier  given back, unless ETIMEDOUT is returned
/// @return as unpack(). ETIMEDOUT: the receive has not ended in `longest`. EAGAIN: no thread could
///         be started, or eight wait already
[[nodiscard]] std::error_code unpack_in_time(base::unique_fd& carrier, std::size_t count,
                                             std::vector<base::unique_fd>& descriptors,
                                             std::chrono::milliseconds longest);

}  // namespace cohort::base
