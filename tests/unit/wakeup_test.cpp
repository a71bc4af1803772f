// SPDX-License-Identifier: BSL-1.0
// The eventfds behind events and barriers, when another process has changed them.
#include "base/files/descriptor.hpp"
#include "share/sync/wakeup.hpp"
#include "sys_support.hpp"

#include <cohort/errors.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <stop_token>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace wakeup_test {

using cohort::share::wakeup;
using cohort::test::in_fork;

namespace {

bool is_set(wakeup& event) {
    pollfd polled{*event.descriptor(), POLLIN, 0};
    return ::poll(&polled, 1, 0) == 1;
}

}  // namespace

TEST_CASE("wakeup: neither set nor clear blocks on an eventfd that was made a blocking one") {
    const auto event = wakeup::make(wakeup::kind::state);
    const int fd = *event->descriptor();
    REQUIRE(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0);
    event->clear();
    CHECK_FALSE(is_set(*event));
    REQUIRE(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0);
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - 1;
    REQUIRE(::write(fd, &most, sizeof most) == sizeof most);
    event->set();
    CHECK(is_set(*event));
    event->clear();
    CHECK_FALSE(is_set(*event));
}

TEST_CASE("wakeup: clear does not block on an eventfd that another process changes meanwhile") {
    const auto event = wakeup::make(wakeup::kind::state);
    const int fd = *event->descriptor();
    const std::jthread hostile([fd](const std::stop_token& stop) {
        const int flags = ::fcntl(fd, F_GETFL);
        std::uint64_t count = 0;
        while (!stop.stop_requested()) {
            ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
            (void)!::read(fd, &count, sizeof count);
            ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
        }
    });
    for (int i = 0; i < 100'000; ++i) {
        event->set();
        event->clear();
    }
}

TEST_CASE("wakeup: each news is an event, and nobody can fill the descriptor") {
    const auto news = wakeup::make(wakeup::kind::news);
    const int fd = *news->descriptor();
    REQUIRE(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0);
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - 1;
    CHECK(::write(fd, &most, sizeof most) < 0);
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    REQUIRE(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
    CHECK(::epoll_wait(epoll, &event, 1, 0) == 0);
    for (int i = 0; i < 3; ++i) {
        news->set();
        CHECK(::epoll_wait(epoll, &event, 1, 30'000) == 1);
    }
    ::close(epoll);
    const auto copy = std::make_shared<const int>(::dup(fd));
    CHECK(wakeup::arrived(wakeup::kind::news, news->number(), copy) == news);
    CHECK_THROWS_AS((void)wakeup::arrived(wakeup::kind::state, news->number() + 1, copy),
                    cohort::codec_error);
    ::close(*copy);
}

TEST_CASE("wakeup: an eventfd that arrives twice is one") {
    const auto event = wakeup::make(wakeup::kind::state);
    const auto copy = std::make_shared<const int>(::dup(*event->descriptor()));
    CHECK(wakeup::arrived(wakeup::kind::state, event->number(), copy) == event);
    CHECK_THROWS_AS((void)wakeup::arrived(wakeup::kind::news, event->number(), copy),
                    cohort::codec_error);
    CHECK_THROWS_AS((void)wakeup::arrived(wakeup::kind::state, 1, nullptr), cohort::codec_error);
}

TEST_CASE("wakeup: an eventfd that arrives under the number of another one is not that one") {
    const auto event = wakeup::make(wakeup::kind::state);
    const auto forged = std::make_shared<const int>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const auto other = wakeup::arrived(wakeup::kind::state, event->number(), forged);
    CHECK(other != event);
    other->set();
    CHECK(is_set(*other));
    CHECK_FALSE(is_set(*event));
    ::close(*forged);
}

TEST_CASE("wakeup: after fork(2) the copy can use the eventfd that it has inherited") {
    const auto event = wakeup::make(wakeup::kind::state);
    CHECK(in_fork([&] {
              event->set();
              return 0;
          }) == 0);
    CHECK(is_set(*event));
}

}  // namespace wakeup_test
