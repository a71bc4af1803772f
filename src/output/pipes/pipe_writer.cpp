// SPDX-License-Identifier: BSL-1.0
#include "output/pipes/pipe_writer.hpp"

#include "base/sys/descriptors.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace cohort::output {

namespace {

/// How often to try where no epoll instance can be made.
constexpr auto without_epoll = std::chrono::milliseconds(10);

}  // namespace

void writable_watch::once(loop::engine& loop, int fd, loop::task then) {
    if (!arm(fd)) {
        loop.timer().at(std::chrono::steady_clock::now() + without_epoll, std::move(then));
        return;
    }
    loop.watch_readable(epoll_->get(), [kept = epoll_, then = std::move(then)] {
        epoll_event event{};
        (void)::epoll_wait(kept->get(), &event, 1, 0);  // takes the event, which is given once
        then();
    });
}

bool writable_watch::expedite() noexcept {
    if (!epoll_)
        return true;  // a timer runs
    std::error_code error;
    always_readable_ = base::make_eventfd(error);
    epoll_event readable{};
    readable.events = EPOLLIN;
    return always_readable_ && base::raise_event(always_readable_.get()) &&
           ::epoll_ctl(epoll_->get(), EPOLL_CTL_ADD, always_readable_.get(), &readable) == 0;
}

bool writable_watch::arm(int fd) noexcept {
    epoll_event wanted{};
    wanted.events = EPOLLOUT | EPOLLONESHOT;
    if (epoll_)
        return ::epoll_ctl(epoll_->get(), EPOLL_CTL_MOD, fd, &wanted) == 0;
    std::error_code error;
    auto made = base::out_of_stdio(base::unique_fd(::epoll_create1(EPOLL_CLOEXEC)), error);
    if (!made || ::epoll_ctl(made.get(), EPOLL_CTL_ADD, fd, &wanted) != 0)
        return false;
    epoll_ = std::make_shared<base::unique_fd>(std::move(made));
    return true;
}

namespace {

/// A turn writes no more than a pipe usually holds, so that other events of the loop get theirs.
constexpr std::size_t most_written_a_turn = 65'536;

/// Asked by poll(2), because a write(2) of no bytes does not fail then.
bool has_no_reader(int fd) noexcept {
    pollfd polled{fd, 0, 0};
    return ::poll(&polled, 1, 0) > 0 && (polled.revents & POLLERR) != 0;
}

}  // namespace

void pipe_writer::write(std::uint64_t id, std::string text, listener then) {
    if (!fd_ || closes_)
        return then(std::make_error_code(std::errc::broken_pipe));
    texts_.push_back(
        {id, std::make_shared<const std::string>(std::move(text)), 0, std::move(then)});
    if (texts_.size() == 1) {
        left_of_turn_ = most_written_a_turn;
        go_on();
    }
}

void pipe_writer::go_on() {
    while (is_free() && !texts_.empty()) {
        const pending& first = texts_.front();
        if (first.text->empty() && has_no_reader(fd_->get()))
            return end();
        if (first.written == first.text->size())
            finish_first({});
        else if (left_of_turn_ == 0)
            await_room();
        else
            write_some(first);
    }
    if (closes_ && is_free())
        close();
}

void pipe_writer::write_some(const pending& first) {
    is_called_ = true;
    loop_.call(
        [fd = fd_, text = first.text, from = first.written, most = left_of_turn_] {
            const auto size = std::min(text->size() - from, most);
            ssize_t wrote = 0;
            do
                wrote = ::write(fd->get(), text->data() + from, size);
            while (wrote < 0 && errno == EINTR);
            return wrote < 0 ? -errno : static_cast<int>(wrote);
        },
        [self = shared_from_this(), id = first.id](int result) {
            self->is_called_ = false;
            self->wrote(id, result);
        });
}

/// @param id  of the text, which may have been cancelled meanwhile
void pipe_writer::wrote(std::uint64_t id, int result) {
    if (has_ended_)
        return close();
    if (result == -EAGAIN)
        return await_room();
    if (result < 0)
        return end();
    left_of_turn_ -= static_cast<std::size_t>(result);
    if (!texts_.empty() && texts_.front().id == id)
        texts_.front().written += static_cast<std::size_t>(result);
    go_on();
}

void pipe_writer::await_room() {
    is_watched_ = true;
    watch_.once(loop_, fd_->get(), [self = shared_from_this()] {
        self->is_watched_ = false;
        self->left_of_turn_ = most_written_a_turn;
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
    go_on();
}

void pipe_writer::end() {
    closes_ = has_ended_ = true;
    while (!texts_.empty())
        finish_first(std::make_error_code(std::errc::broken_pipe));
    // A process that the worker has started may hold the other end for ever.
    if (!is_called_ && (!is_watched_ || watch_.expedite()))
        close();
}

void pipe_writer::close() {
    if (!fd_)
        return;
    loop_.call(
        [fd = std::exchange(fd_, nullptr)] {
            fd->reset();
            return 0;
        },
        [](int) {});
}

}  // namespace cohort::output
