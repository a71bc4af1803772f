// SPDX-License-Identifier: BSL-1.0
#include "supervisor/result_descriptors.hpp"

#include "dispose_support.hpp"
#include "record/result_message.hpp"
#include "share/dispose.hpp"
#include "sys/socket.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <span>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

// What a worker has sent is closed by the thread of share::dispose(). These cases keep that thread
// busy, and so see that the thread which receives closes nothing.
namespace result_descriptors_test {

using cohort::record::result_message;
using cohort::supervisor::result_descriptors;
using cohort::sys::unique_fd;
using cohort::test::blocked_disposal;

namespace {

/// The socket of a group's results, and a pipe whose reading end shows when the other is closed.
struct results {
    unique_fd worker;
    std::optional<result_descriptors> host;
    unique_fd reading;

    results() {
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        worker = unique_fd(ends[0]);
        constexpr int on = 1;
        REQUIRE(::setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
        host.emplace(unique_fd(ends[1]), 1);
    }
    void send_pipe(int index) {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        reading = unique_fd(ends[0]);
        const unique_fd writing(ends[1]);
        result_message message{index, 0};
        const int number = writing.get();
        REQUIRE_FALSE(cohort::sys::send_message(worker.get(), std::as_bytes(std::span(&message, 1)),
                                                std::span(&number, 1)));
    }
    auto take() {
        bool lost = false;
        return host->take(0, ::getpid(), lost);
    }
    bool is_closed(int milliseconds) const {
        pollfd end{reading.get(), POLLIN, 0};
        return ::poll(&end, 1, milliseconds) == 1;
    }
};

/// The queue takes a thread that is busy for a second for one that hangs. So on a slow machine one
/// try of several must do.
template <class Drop>
void check_closed_elsewhere(int index, Drop drop) {
    bool stayed_open = false;
    for (int i = 0; i < 20 && !stayed_open; ++i) {
        results sent;
        {
            const blocked_disposal busy;
            sent.send_pipe(index);
            drop(sent);
            stayed_open = !sent.is_closed(0);
        }
        REQUIRE(sent.is_closed(60'000));
    }
    CHECK(stayed_open);
}

}  // namespace

TEST_CASE("result descriptors: what comes in a bad message is closed on another thread") {
    check_closed_elsewhere(7, [](results& sent) { CHECK_FALSE(sent.take()); });
}

TEST_CASE("result descriptors: what nobody takes out of a result is closed on another thread") {
    check_closed_elsewhere(0, [](results& sent) { CHECK(sent.take()); });
}

TEST_CASE("result descriptors: what was not received is closed on another thread") {
    check_closed_elsewhere(0, [](results& sent) { sent.host.reset(); });
}

TEST_CASE("result descriptors: who takes a result owns its descriptors") {
    results sent;
    sent.send_pipe(0);
    auto came = sent.take();
    REQUIRE(came);
    REQUIRE(came->owned().size() == 1);
    const auto taken = came->owned()[0];
    came.reset();
    CHECK_FALSE(sent.is_closed(0));
    CHECK(::write(*taken, "x", 1) == 1);
    CHECK(sent.is_closed(60'000));
}

}  // namespace result_descriptors_test
