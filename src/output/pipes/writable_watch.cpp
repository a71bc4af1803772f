// SPDX-License-Identifier: BSL-1.0
#include "output/pipes/writable_watch.hpp"

#include "base/sys/descriptors.hpp"

#include <chrono>
#include <system_error>
#include <utility>

#include <sys/epoll.h>

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

}  // namespace cohort::output
