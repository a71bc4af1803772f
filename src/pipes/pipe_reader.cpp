// SPDX-License-Identifier: BSL-1.0
#include "pipes/pipe_reader.hpp"

#include "pipes/pipe.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include <unistd.h>

namespace cohort::output {

namespace {

constexpr std::size_t most_a_turn = 65'536;

/// Where all pipes are read to. Only the output thread reads.
char* read_buffer() noexcept {
    static char buffer[most_a_turn];
    return buffer;
}

/// @return bytes, or -errno
ssize_t read_once(int fd, std::size_t most) noexcept {
    ssize_t got = 0;
    do
        got = ::read(fd, read_buffer(), std::min(most, most_a_turn));
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

}  // namespace

pipe_reader::pipe_reader(engine::engine& loop, sys::unique_fd fd, std::shared_ptr<byte_sink> sink,
                         std::shared_ptr<std::atomic<int>> lingering)
    : loop_(loop), fd_(std::move(fd)), sink_(std::move(sink)), lingering_(std::move(lingering)) {}

pipe_reader::~pipe_reader() { close(); }

/// A descriptor can have one watch at a time.
void pipe_reader::watch() {
    if (std::exchange(is_watched_, true))
        return;
    loop_.watch_readable(fd_.get(), [self = shared_from_this()] {
        self->is_watched_ = false;
        self->turn();
    });
}

void pipe_reader::go_on() {
    if (state_ != state::waits_for_room || !sink_->has_room())
        return;  // another sink is full, and calls again
    state_ = state::reads;
    watch();
}

void pipe_reader::turn() {
    if (state_ == state::waits_for_room || state_ == state::closed)
        return;
    const ssize_t got = read_once(fd_.get(), most_a_turn);
    if (got == 0 || (got < 0 && got != -EAGAIN)) {
        end_stream({static_cast<int>(-got), std::system_category()});
        return close();
    }
    if (got > 0 && sink_)
        sink_->take({read_buffer(), static_cast<std::size_t>(got)});
    if (sink_ && !sink_->has_room())
        state_ = state::waits_for_room;
    else
        watch();
}

void pipe_reader::worker_ended() {
    if (state_ == state::lingers || state_ == state::closed)
        return;
    std::error_code error;
    for (auto left = bytes_in(fd_.get()); left > 0;) {
        const ssize_t got = read_once(fd_.get(), left);
        if (got < 0)
            error = {static_cast<int>(-got), std::system_category()};
        if (got <= 0)
            break;
        sink_->take({read_buffer(), static_cast<std::size_t>(got)});
        left -= static_cast<std::size_t>(got);
    }
    end_stream(error);
    state_ = state::lingers;
    ++*lingering_;
    watch();
}

void pipe_reader::end_stream(std::error_code why) {
    if (const auto sink = std::exchange(sink_, nullptr))
        sink->end(why);
}

void pipe_reader::close() {
    if (state_ == state::lingers)
        --*lingering_;
    state_ = state::closed;
    fd_.reset();
}

}  // namespace cohort::output
