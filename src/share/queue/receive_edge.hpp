// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <system_error>

#include <sys/epoll.h>

namespace cohort::share {

/// An event each time a message of a queue is received, seen from its writing end. A socket reports
/// that it can be written whenever a message has left it, even if it could be written before
/// (unix_write_space() of the kernel), as long as at most a quarter of its buffer is filled.
///
/// No event comes where there is no room for the descriptor, or the buffer is filled further.
class receive_edge {
public:
    explicit receive_edge(int writer) noexcept {
        std::error_code error;
        epoll_ = base::out_of_stdio(base::unique_fd(::epoll_create1(EPOLL_CLOEXEC)), error);
        epoll_event event{};
        event.events = EPOLLOUT | EPOLLET;
        if (error || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, writer, &event) != 0)
            epoll_.reset();
        clear();
    }

    /// Readable after an event, until clear(). -1: there are no events.
    int descriptor() const noexcept { return epoll_ ? epoll_.get() : -1; }
    void clear() noexcept {
        epoll_event event;
        (void)!::epoll_wait(epoll_ ? epoll_.get() : -1, &event, 1, 0);
    }

private:
    base::unique_fd epoll_;
};

}  // namespace cohort::share
