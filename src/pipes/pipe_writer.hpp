// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "engine/engine.hpp"
#include "pipes/writable_watch.hpp"
#include "sys/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

namespace cohort::output {

/// Feeds the standard input of one worker. Texts are written one after another; each is over when
/// the pipe has taken all of it. Belongs to the loop's thread.
class pipe_writer : public std::enable_shared_from_this<pipe_writer> {
public:
    using listener = std::function<void(std::error_code)>;

    pipe_writer(engine::engine& loop, sys::unique_fd fd) : loop_(loop), fd_(std::move(fd)) {}

    /// Calls `then` when the text is over: with no error, with EPIPE when the worker reads no more,
    /// or with ECANCELED.
    /// @param id  names the text for cancel()
    void write(std::uint64_t id, std::string text, listener then);
    /// Drops what the pipe has not yet taken of a text. @return whether it was here
    bool cancel(std::uint64_t id);
    /// Closes the pipe when all texts that were given before are over.
    void close_after_all();
    /// Nobody reads any more: every text is over, with EPIPE.
    void end();

private:
    struct pending {
        std::uint64_t id;
        std::string text;
        std::size_t written = 0;
        listener then;
    };

    void go_on();
    void await_room();
    void finish_first(std::error_code error);

    engine::engine& loop_;
    sys::unique_fd fd_;  // empty: closed
    writable_watch watch_;
    std::deque<pending> texts_;
    bool closes_ = false;
    bool is_watched_ = false;
};

}  // namespace cohort::output
