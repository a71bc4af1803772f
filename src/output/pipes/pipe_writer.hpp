// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/patient_containers.hpp"
#include "base/sys/unique_fd.hpp"
#include "loop/engine/engine.hpp"
#include "output/pipes/writable_watch.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

namespace cohort::output {

/// Feeds the standard input of one worker. Texts are written one after another; each is over when
/// the pipe has taken all of it. Belongs to the loop's thread.
///
/// All calls on the pipe are made by engine::call(), because each takes the pipe's lock, which a
/// worker can hold for as long as it likes.
class pipe_writer : public std::enable_shared_from_this<pipe_writer> {
public:
    using listener = base::callback<void(std::error_code)>;

    pipe_writer(loop::engine& loop, std::shared_ptr<base::unique_fd> fd)
        : loop_(loop), fd_(std::move(fd)) {}
    ~pipe_writer() { close(); }

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
        std::shared_ptr<const std::string> text;  // shared with a call that may outlive its end
        std::size_t written = 0;
        listener then;
    };

    bool is_free() const noexcept { return fd_ && !is_watched_ && !is_called_; }
    void go_on();
    void write_some(const pending& first);
    void wrote(std::uint64_t id, int result);
    void await_room();
    void finish_first(std::error_code error);
    void close();

    loop::engine& loop_;
    std::shared_ptr<base::unique_fd> fd_;  // null: closed
    writable_watch watch_;
    base::patient_deque<pending> texts_;
    std::size_t left_of_turn_ = 0;  // how many bytes may still be written in this turn
    bool closes_ = false;           // when all texts are over
    bool has_ended_ = false;        // nobody reads any more
    bool is_watched_ = false;
    bool is_called_ = false;  // a call on the pipe is not over
};

}  // namespace cohort::output
