// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "pool/wire/frame.hpp"

#include <cohort/detail/queue_message.hpp>

#include <optional>
#include <span>
#include <vector>

namespace cohort::pools {

struct received_frame {
    frame_name name;
    detail::queue_message message;
};

/// A worker's end of the connection to its pool. Its calls wait.
class connection {
public:
    explicit connection(detail::attachment socket);

    /// @return empty: the pool has closed its end
    /// @throws codec_error, sharing_error  what came is no frame, or can't be taken
    std::optional<received_frame> receive();
    /// Gets the bytes of a frame that came beside it.
    /// @throws sharing_error, std::bad_alloc  there is no room for them now
    void load(received_frame& frame);
    /// @return false: the pool has closed its end
    /// @throws sharing_error, std::bad_alloc  there is no room for it, and nothing was sent
    bool send(const frame_name& name, std::span<const std::byte> payload,
              std::vector<detail::attachment> attachments = {});

private:
    detail::attachment socket_;
};

}  // namespace cohort::pools
