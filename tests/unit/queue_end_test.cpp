// SPDX-License-Identifier: BSL-1.0
#include "share/queue/end.hpp"

#include "base/files/descriptor.hpp"
#include "base/sys/socket.hpp"
#include "dispose_support.hpp"
#include "loop/engine/engine.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "share/channel/channel.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <future>
#include <memory>
#include <span>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

// What unread messages hold is closed by the thread of base::dispose(), not by the engine's. These
// cases keep that thread busy, and so see who closes.
namespace queue_end_test {

using namespace cohort;
using namespace cohort::test;

namespace {

/// A reading end whose socket holds a message with a descriptor that nobody has received.
struct unread {
    std::shared_ptr<share::end> end;
    base::unique_fd reading;  // of a pipe, shows when the descriptor in the message is closed

    unread() {
        auto made = share::make_channel(0);
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        reading = base::unique_fd(ends[0]);
        const base::unique_fd writing(ends[1]);
        constexpr std::byte one{};
        REQUIRE_FALSE(
            base::send_message(made.writer.get(), std::span(&one, 1), std::array{writing.get()}));
        end =
            share::end_of(share::end::side::reader, base::own(std::move(made.reader)), nullptr, {});
    }
    bool is_closed(int milliseconds) const {
        pollfd pipe{reading.get(), POLLIN, 0};
        return ::poll(&pipe, 1, milliseconds) == 1;
    }
};

}  // namespace

// An engine never ends, so the case has a process of its own.
TEST_CASE("queue end: the engine's thread closes no messages that nobody has read") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    CHECK(in_fork([] {
              auto& loop = *new loop::engine;
              loop.start();
              bool stayed_open = false;
              // A thread that is busy for a second is taken for one that hangs, so on a slow
              // machine one try of several must do.
              for (int i = 0; i < 20 && !stayed_open; ++i) {
                  unread held;
                  {
                      const blocked_disposal busy;
                      std::promise<void> dropped;
                      loop.post([&] {
                          held.end.reset();
                          dropped.set_value();
                      });
                      dropped.get_future().wait();
                      stayed_open = !held.is_closed(0);
                  }
                  if (!held.is_closed(60'000))
                      return 1;
              }
              return stayed_open ? 0 : 2;
          }) == 0);
}

TEST_CASE("queue end: a thread of the user's closes an end while the background is busy") {
    unread held;
    const blocked_disposal busy;
    held.end.reset();
    CHECK(held.is_closed(60'000));
}

}  // namespace queue_end_test
