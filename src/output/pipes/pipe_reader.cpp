// SPDX-License-Identifier: BSL-1.0
#include "output/pipes/pipe_reader.hpp"

#include "output/pipes/pipe.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>

#include <unistd.h>

namespace cohort::output {

namespace {

/// How long to wait after a read into nothing: a writer that floods the pipe waits meanwhile.
constexpr auto between_lingering_reads = std::chrono::milliseconds(10);

std::shared_ptr<char[]> new_buffer() {
    return std::shared_ptr<char[]>(new char[pipe_reader::most_a_turn]);
}

/// The memory to read a pipe to. One buffer serves all pipes that the loop's thread reads. Another
/// thread has a new one for each call, because the loop may still need what the last call has read.
/// A call that hangs keeps its thread's buffer, while another thread takes over the loop.
std::shared_ptr<char[]> read_buffer() {
    if (!loop::engine::is_this_thread())
        return new_buffer();
    thread_local std::shared_ptr<char[]> buffer;
    if (!buffer)
        buffer = new_buffer();
    return buffer;
}

}  // namespace

/// What a call works on, which may outlive the reader.
struct pipe_reader::pipe {
    base::unique_fd fd;
    std::shared_ptr<char[]> bytes;    // what was read last
    std::size_t left = 0;             // how much of the rest is still to be read
    std::atomic<unsigned> begun = 0;  // calls; a call may have to wait for others before it begins

    /// @return bytes, or -errno
    int read_once(std::size_t most) {
        bytes = read_buffer();
        ssize_t got = 0;
        do
            got = ::read(fd.get(), bytes.get(), std::min(most, pipe_reader::most_a_turn));
        while (got < 0 && errno == EINTR);
        return got < 0 ? -errno : static_cast<int>(got);
    }
};

pipe_reader::pipe_reader(loop::engine& loop, base::unique_fd fd, std::shared_ptr<byte_sink> sink,
                         std::shared_ptr<std::atomic<int>> lingering)
    : loop_(loop), pipe_(std::make_shared<pipe>()), sink_(std::move(sink)),
      lingering_(std::move(lingering)) {
    pipe_->fd = std::move(fd);
}

pipe_reader::~pipe_reader() { close(); }

/// A descriptor can have one watch at a time.
void pipe_reader::watch() {
    if (std::exchange(is_watched_, true))
        return;
    loop_.watch_readable(pipe_->fd.get(), [self = shared_from_this()] {
        self->is_watched_ = false;
        self->turn();
    });
}

bool pipe_reader::go_on() {
    if (state_ != state::waits_for_room || !sink_->has_room())
        return false;  // another sink is full, and calls again
    state_ = state::reads;
    turn();  // it reads at once, because a pipe that another process has emptied leaves its turn
    return true;
}

/// Asks for room before it reads, because other streams may have filled the sinks since it was
/// readable.
void pipe_reader::turn() {
    if (is_called_ || (state_ != state::reads && state_ != state::lingers))
        return;
    if (!sink_ || sink_->has_room())
        return read();
    state_ = state::waits_for_room;
    sink_->leave_room();
}

void pipe_reader::read() {
    is_called_ = true;
    ++asked_;
    loop_.call(
        [pipe = pipe_] {
            ++pipe->begun;
            return pipe->read_once(most_a_turn);
        },
        [self = shared_from_this()](int got) {
            self->is_called_ = false;
            self->turn_over(got);
        });
}

void pipe_reader::turn_over(int got) {
    give_to_sink(got);
    if (got == 0 || (got < 0 && got != -EAGAIN)) {
        end_stream({-got, std::system_category()});
        return close();
    }
    if (sink_)
        sink_->leave_room();
    if (state_ == state::ends)
        read_rest();
    else if (state_ == state::lingers && got > 0)
        watch_in(between_lingering_reads);
    else
        watch();
}

void pipe_reader::watch_in(std::chrono::milliseconds time) {
    loop_.timer().at(loop_.now() + time, [self = shared_from_this()] { self->watch(); });
}

void pipe_reader::give_to_sink(int got) {
    if (got > 0 && sink_)
        sink_->take({pipe_->bytes.get(), static_cast<std::size_t>(got)});
    pipe_->bytes.reset();
}

void pipe_reader::worker_ended(loop::task then) {
    if (state_ == state::lingers || state_ == state::closed)
        return then();
    state_ = state::ends;
    ended_ = std::move(then);
    if (!is_called_)
        read_rest();
}

void pipe_reader::read_rest() {
    is_called_ = true;
    ++asked_;
    loop_.call(
        [pipe = pipe_] {
            ++pipe->begun;
            if (pipe->left == 0)
                pipe->left = most_bytes_in(pipe->fd.get());
            return pipe->left == 0 ? 0 : pipe->read_once(pipe->left);
        },
        [self = shared_from_this()](int got) {
            self->is_called_ = false;
            self->rest_came(got);
        });
}

void pipe_reader::rest_came(int got) {
    give_to_sink(got);
    if (state_ != state::ends)
        return watch();  // it was given up
    if (got > 0) {
        pipe_->left -= static_cast<std::size_t>(got);
        if (pipe_->left > 0)  // the worker decides how much, so others get their turns
            return loop_.post([self = shared_from_this()] {
                if (self->state_ == state::ends && !self->is_called_)
                    self->read_rest();
            });
    }
    linger();
    // Less than was expected is no error: it was not known, or another reader has taken the rest.
    const bool is_error = got < 0 && got != -EAGAIN;
    end_stream(is_error ? std::error_code(-got, std::system_category()) : std::error_code());
    watch();
}

void pipe_reader::look() {
    const unsigned begun = pipe_->begun;
    const bool hangs = is_called_ && begun == asked_;
    if (state_ != state::ends || !hangs || std::exchange(seen_, begun) != begun)
        return;
    linger();
    end_stream(std::make_error_code(std::errc::timed_out));
}

void pipe_reader::end_stream(std::error_code why) {
    if (const auto sink = std::exchange(sink_, nullptr))
        sink->end(why);
    if (const auto ended = std::exchange(ended_, nullptr))
        ended();
}

void pipe_reader::linger() {
    state_ = state::lingers;
    ++*lingering_;
}

void pipe_reader::close() {
    if (state_ == state::closed)
        return;
    if (state_ == state::lingers)
        --*lingering_;
    state_ = state::closed;
    loop_.call(
        [pipe = pipe_] {
            pipe->fd.reset();
            return 0;
        },
        [](int) {});
}

}  // namespace cohort::output
