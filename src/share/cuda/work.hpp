// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/cuda/session.hpp"

/// Waiting for the work of a device, also while one of its streams captures a graph. The driver
/// refuses some calls then, and most of those that it refuses make the capture invalid.
namespace cohort::share::device {

/// A stream of the library's own, in the current context. No other stream waits for it, nor it for
/// others, so it can be used while others capture.
class own_stream {
public:
    /// @throws sharing_error
    explicit own_stream(const operation& with);
    own_stream(const own_stream&) = delete;
    own_stream& operator=(const own_stream&) = delete;
    ~own_stream();

    driver::stream get() const noexcept { return made_; }

private:
    const driver::calls& calls_;
    driver::stream made_ = nullptr;
};

/// Whether the default stream can't be used, because a stream that it waits for captures. Does not
/// see captures of streams that were made non-blocking.
/// @throws sharing_error
bool default_stream_is_blocked(const operation& with);

/// Waits for all work of a stream. @throws sharing_error  EBUSY: the stream captures
void await_stream(const operation& with, driver::stream stream);
/// Waits for all work of the device. @throws sharing_error  EBUSY: one of its streams captures
void await_device(const operation& with);

}  // namespace cohort::share::device
