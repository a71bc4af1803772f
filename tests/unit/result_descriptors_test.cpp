// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/result_descriptors.hpp"

#include "base/files/carrier.hpp"
#include "base/files/dispose.hpp"
#include "base/sys/socket.hpp"
#include "dispose_support.hpp"
#include "guard.hpp"
#include "protocol/record/control.hpp"

#include <cohort/errors.hpp>

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

// What a worker has sent is closed by the thread of base::dispose(). These cases keep that thread
// busy, and so see that the thread which receives closes nothing.
namespace result_descriptors_test {

using cohort::base::unique_fd;
using cohort::groups::result_descriptors;
using cohort::protocol::result_message;
using cohort::test::blocked_disposal;

namespace {

/// The socket of a worker's result, and a pipe whose reading end shows when the other is closed.
struct results {
    cohort::test::leak_guard guard;  // waits for what the other thread closes
    unique_fd worker;
    std::optional<result_descriptors> host;
    unique_fd reading;

    results() {
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        worker = unique_fd(ends[0]);
        constexpr int on = 1;
        REQUIRE(::setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
        host.emplace(unique_fd(ends[1]));
    }
    unique_fd make_pipe() {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        reading = unique_fd(ends[0]);
        return unique_fd(ends[1]);
    }
    void send(result_message message, std::span<const int> descriptors) {
        REQUIRE_FALSE(cohort::base::send_message(
            worker.get(), std::as_bytes(std::span(&message, 1)), descriptors));
    }
    void send_pipe() {
        const auto writing = make_pipe();
        send({}, std::array{writing.get()});
    }
    void send_bad() {
        const auto writing = make_pipe();
        send({}, std::array{writing.get(), writing.get()});
    }
    auto take(pid_t worker = ::getpid()) {
        bool lost = false;
        return host->take(worker, lost);
    }
    bool is_closed(int milliseconds) const {
        pollfd end{reading.get(), POLLIN, 0};
        return ::poll(&end, 1, milliseconds) == 1;
    }
};

/// The queue takes a thread that is busy for a second for one that hangs. So on a slow machine one
/// try of several must do.
template <class Send, class Drop>
void check_closed_elsewhere(Send send, Drop drop) {
    bool stayed_open = false;
    for (int i = 0; i < 20 && !stayed_open; ++i) {
        results sent;
        {
            const blocked_disposal busy;
            send(sent);
            drop(sent);
            stayed_open = !sent.is_closed(0);
        }
        REQUIRE(sent.is_closed(60'000));
    }
    CHECK(stayed_open);
}

}  // namespace

TEST_CASE("result descriptors: what comes in a bad message is closed on another thread") {
    check_closed_elsewhere([](results& sent) { sent.send_bad(); },
                           [](results& sent) { CHECK_FALSE(sent.take()); });
}

TEST_CASE("result descriptors: what nobody takes out of a result is closed on another thread") {
    check_closed_elsewhere([](results& sent) { sent.send_pipe(); },
                           [](results& sent) { CHECK(sent.take()); });
}

TEST_CASE("result descriptors: what was not received is closed on another thread") {
    check_closed_elsewhere([](results& sent) { sent.send_pipe(); },
                           [](results& sent) { sent.host.reset(); });
}

TEST_CASE("result descriptors: who takes a result owns its descriptors") {
    results sent;
    sent.send_pipe();
    auto came = sent.take();
    REQUIRE(came);
    REQUIRE(came->owned().size() == 1);
    const auto taken = came->owned()[0];
    came.reset();
    CHECK_FALSE(sent.is_closed(0));
    CHECK(::write(*taken, "x", 1) == 1);
    CHECK(sent.is_closed(60'000));
}

TEST_CASE("result descriptors: packed ones are unpacked by the thread that takes the result") {
    results sent;
    unique_fd carrier;
    {
        const auto writing = sent.make_pipe();
        std::error_code error;
        carrier = cohort::base::pack(std::array{writing.get(), writing.get()}, error);
        REQUIRE_FALSE(error);
        sent.send({2}, std::array{carrier.get()});
    }
    auto came = sent.take();
    REQUIRE(came);
    pollfd inside{carrier.get(), POLLIN, 0};
    CHECK(::poll(&inside, 1, 0) == 1);
    CHECK(came->owned().size() == 2);
    CHECK(came->owned().size() == 2);
    inside.revents = 0;
    CHECK(::poll(&inside, 1, 0) == 1);
    CHECK(inside.revents == (POLLIN | POLLHUP));  // the end
    CHECK_FALSE(sent.is_closed(0));
    came.reset();
    CHECK(sent.is_closed(60'000));
}

TEST_CASE("result descriptors: nothing is received from a file that is no socket of packets") {
    results sent;
    const unique_fd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sent.send({2}, std::array{other.get()});
    const auto came = sent.take();
    REQUIRE(came);
    CHECK_THROWS_AS((void)came->owned(), cohort::codec_error);
}

TEST_CASE("result descriptors: a message that another process than the worker sent is dropped") {
    results sent;
    sent.send_pipe();
    CHECK_FALSE(sent.take(::getppid()));
    CHECK(sent.is_closed(60'000));
}

TEST_CASE("result descriptors: a message of no bytes hides none that follows") {
    results sent;
    REQUIRE(::send(sent.worker.get(), "", 0, MSG_NOSIGNAL) == 0);
    sent.send_pipe();
    CHECK(sent.take());
}

TEST_CASE("result descriptors: one message brings this process no more than one descriptor") {
    results sent;
    sent.send_bad();
    CHECK_FALSE(sent.take());
    CHECK(sent.is_closed(60'000));
}

}  // namespace result_descriptors_test
