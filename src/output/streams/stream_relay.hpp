// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"

#include <cohort/output.hpp>
#include <cohort/policies.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace cohort::output {

/// One stream of one start of one worker.
struct stream_origin {
    int index;    // of the worker
    int attempt;  // how often it was started before
    stream from;
    std::shared_ptr<const std::string> host = {};  // null: this machine
};

/// Brings streams to another machine, which has the group's queue. Used on the output thread.
class stream_relay {
public:
    virtual ~stream_relay() = default;
    /// Takes bytes, also without room.
    virtual void take(const stream_origin& of, when_full full, std::string_view bytes) = 0;
    /// Asked only for a stream that waits for room.
    virtual bool has_room(const stream_origin& of) const = 0;
    /// Calls `then` once, when there is room.
    virtual void when_room(const stream_origin& of, base::callback<bool()> then) = 0;
    virtual void end_stream(const stream_origin& of) = 0;
};

}  // namespace cohort::output
