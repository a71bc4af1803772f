// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/channel/channel.hpp"

namespace cohort::pools {

/// Larger payloads go by memory files, so that no packet takes long to copy or has to wait for
/// room.
inline constexpr std::size_t largest_inlined = std::size_t{64} << 10;

/// The channel of one end of the connection between a pool and a worker. Borrows the socket.
share::channel channel_of(int socket) noexcept;

}  // namespace cohort::pools
