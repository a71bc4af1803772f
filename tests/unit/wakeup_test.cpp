// SPDX-License-Identifier: BSL-1.0
// The eventfds behind events and barriers, when another process has changed them.
#include "share/descriptor.hpp"
#include "sync/wakeup.hpp"

#include <cohort/errors.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <memory>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace wakeup_test {

using cohort::sync::wakeup;

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

TEST_CASE("wakeup: an eventfd that arrives twice is one") {
    const auto event = wakeup::make(wakeup::kind::state);
    const auto copy = std::make_shared<const int>(::dup(*event->descriptor()));
    CHECK(wakeup::arrived(wakeup::kind::state, event->number(), copy) == event);
    CHECK_THROWS_AS((void)wakeup::arrived(wakeup::kind::news, event->number(), copy),
                    cohort::codec_error);
    const auto other = wakeup::arrived(wakeup::kind::state, event->number() + 1, copy);
    CHECK(other != event);
    other->set();
    CHECK(is_set(*event));
    CHECK_THROWS_AS((void)wakeup::arrived(wakeup::kind::state, 1, nullptr), cohort::codec_error);
}

}  // namespace wakeup_test
