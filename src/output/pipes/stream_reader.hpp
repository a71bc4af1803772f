// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"

#include <cstdint>
#include <string_view>
#include <system_error>

namespace cohort::output {

/// Takes what is read from a stream. Called on the loop's thread.
class byte_sink {
public:
    virtual ~byte_sink() = default;
    virtual void take(std::string_view bytes) = 0;
    /// What was left out before the next bytes. What came before them ends there.
    virtual void lose(std::uint64_t lines, std::uint64_t bytes) { (void)lines, (void)bytes; }
    /// Whether more may be read now. If not, the sink calls stream_reader::go_on() later.
    virtual bool has_room() = 0;
    /// A turn of this stream is over: what room there is now is for the next stream that waits.
    virtual void leave_room() = 0;
    /// Nothing more comes. Called once. @param why  an error of the last read, or none
    virtual void end(std::error_code why) = 0;
};

/// Reads one stream of one worker into a sink. Belongs to the loop's thread.
class stream_reader {
public:
    virtual ~stream_reader() = default;
    /// Begins to read.
    virtual void begin() = 0;
    /// Reads on after the sink had no room. @return whether it does; else the room is for others
    virtual bool go_on() = 0;
    /// The worker has ended: takes what it has left, even over the sink's room, then ends the
    /// stream and calls `then`.
    virtual void worker_ended(loop::task then) = 0;
    /// To be called now and then while the stream ends: ends it if nothing goes on.
    virtual void look() = 0;
};

}  // namespace cohort::output
