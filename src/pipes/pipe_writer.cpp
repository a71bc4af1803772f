// SPDX-License-Identifier: BSL-1.0
#include "pipes/pipe_writer.hpp"

#include "sys/error.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace cohort::output {

namespace {

/// A turn writes no more than a pipe usually holds, so that other events of the loop get theirs.
constexpr std::size_t most_a_turn = 65'536;

/// write(2) of nothing does not tell.
bool has_no_reader(int fd) noexcept {
    pollfd polled{fd, 0, 0};
    return ::poll(&polled, 1, 0) > 0 && (polled.revents & POLLERR) != 0;
}

}  // namespace

void pipe_writer::write(std::uint64_t id, std::string text, listener then) {
    if (!fd_ || closes_)
        return then(std::make_error_code(std::errc::broken_pipe));
    texts_.push_back({id, std::move(text), 0, std::move(then)});
    if (texts_.size() == 1)
        go_on();
}

void pipe_writer::go_on() {
    if (is_watched_ || !fd_)
        return;
    std::size_t left = most_a_turn;
    while (!texts_.empty()) {
        pending& first = texts_.front();
        const auto rest = first.text.size() - first.written;
        if (first.text.empty() && has_no_reader(fd_.get()))
            return end();
        if (rest == 0) {
            finish_first({});
            continue;
        }
        if (left == 0)
            return await_room();
        const ssize_t wrote =
            ::write(fd_.get(), first.text.data() + first.written, std::min(rest, left));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0 && errno == EAGAIN)
            return await_room();
        if (wrote < 0)
            return end();
        first.written += static_cast<std::size_t>(wrote);
        left -= static_cast<std::size_t>(wrote);
    }
    if (closes_)
        fd_.reset();
}

void pipe_writer::await_room() {
    is_watched_ = true;
    watch_.once(loop_, fd_.get(), [self = shared_from_this()] {
        self->is_watched_ = false;
        self->go_on();
    });
}

/// The listener may call back, so it is called last.
void pipe_writer::finish_first(std::error_code error) {
    const auto then = std::move(texts_.front().then);
    texts_.pop_front();
    then(error);
}

bool pipe_writer::cancel(std::uint64_t id) {
    const auto found = std::ranges::find(texts_, id, &pending::id);
    if (found == texts_.end())
        return false;
    const auto then = std::move(found->then);
    texts_.erase(found);
    then(std::make_error_code(std::errc::operation_canceled));
    go_on();
    return true;
}

void pipe_writer::close_after_all() {
    closes_ = true;
    if (texts_.empty() && !is_watched_)
        fd_.reset();
}

void pipe_writer::end() {
    closes_ = true;
    while (!texts_.empty())
        finish_first(std::make_error_code(std::errc::broken_pipe));
    // A process that the worker has started may hold the other end for ever.
    if (!is_watched_ || watch_.hasten())
        fd_.reset();
}

}  // namespace cohort::output
