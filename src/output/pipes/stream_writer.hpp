// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"

#include <cstdint>
#include <string>
#include <system_error>

namespace cohort::output {

/// Feeds the standard input of one worker. Texts are written one after another. Belongs to the
/// loop's thread.
class stream_writer {
public:
    using listener = base::callback<void(std::error_code)>;

    virtual ~stream_writer() = default;
    /// Calls `then` when the text is over: with no error, with EPIPE when the worker reads no more,
    /// or with ECANCELED.
    /// @param id  names the text for cancel()
    virtual void write(std::uint64_t id, std::string text, listener then) = 0;
    /// Drops what was not yet taken of a text. @return whether it was here
    virtual bool cancel(std::uint64_t id) = 0;
    /// Ends the input when all texts that were given before are over.
    virtual void close_after_all() = 0;
    /// Nobody reads any more: every text is over, with EPIPE.
    virtual void end() = 0;
};

}  // namespace cohort::output
