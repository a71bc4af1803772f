// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "loop/engine/engine.hpp"
#include "output/pipes/pipe.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <system_error>

namespace cohort::output {

/// Tells when a pipe takes bytes again. The loop watches for readable descriptors only; an epoll
/// instance is readable when the pipe in it is writable. Belongs to the loop's thread.
class writable_watch {
public:
    /// Calls `then` once, when `fd` can be written to or has no reader any more. `fd` must stay
    /// open until then. One watch at a time.
    void once(loop::engine& loop, int fd, loop::task then);
    /// Makes the pending call of `then` come at once, even if `fd` is closed meanwhile.
    /// @return false: it can't
    bool expedite() noexcept;

private:
    bool arm(int fd) noexcept;

    std::shared_ptr<base::unique_fd> epoll_;  // made at the first wait
    base::unique_fd always_readable_;
};

/// Feeds a worker by a pipe. A text is over when the pipe has taken all of it. Belongs to the
/// loop's thread, which destroys it, too.
///
/// All calls on the pipe are made by engine::call(), because each takes the pipe's lock, which a
/// worker can hold for as long as it likes.
class pipe_writer final : public stream_writer, public std::enable_shared_from_this<pipe_writer> {
public:
    pipe_writer(loop::engine& loop, std::shared_ptr<base::unique_fd> fd)
        : loop_(loop), fd_(std::move(fd)) {}
    ~pipe_writer() override { close(); }

    void write(std::uint64_t id, std::string text, listener then) override;
    bool cancel(std::uint64_t id) override;
    void close_after_all() override;
    void end() override;

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
    std::deque<pending> texts_;
    std::size_t left_of_turn_ = 0;  // how many bytes may still be written in this turn
    bool closes_ = false;           // when all texts are over
    bool has_ended_ = false;        // nobody reads any more
    bool is_watched_ = false;
    bool is_called_ = false;  // a call on the pipe is not over
};

}  // namespace cohort::output
