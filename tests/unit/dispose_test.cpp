// SPDX-License-Identifier: BSL-1.0
#include "base/files/dispose.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/socket.hpp"
#include "dispose_support.hpp"
#include "group/supervisor/record_reader.hpp"
#include "guard.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dispose_test {

using namespace std::chrono_literals;

using cohort::base::await_disposed;
using cohort::base::dispose;
using cohort::base::unique_fd;
using cohort::test::blocked_disposal;

namespace {

/// A pipe whose reading end shows when the writing end is closed.
struct watched_end {
    unique_fd reading;
    unique_fd writing;
    watched_end() {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        reading = unique_fd(ends[0]);
        writing = unique_fd(ends[1]);
    }
    bool is_closed_within(int milliseconds) const {
        pollfd end{reading.get(), POLLIN, 0};
        return ::poll(&end, 1, milliseconds) == 1;
    }
};

unique_fd file_of(off_t size) {
    unique_fd file(::memfd_create("test", MFD_CLOEXEC));
    REQUIRE(file);
    REQUIRE(::fallocate(file.get(), 0, 0, size) == 0);
    return file;
}

/// A socket whose close waits for minutes, as long as `peer`, which reads nothing, is open.
unique_fd lingering_socket(unique_fd& peer) {
    const unique_fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &length) == 0);
    unique_fd sender(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(sender.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    peer = unique_fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(::fcntl(sender.get(), F_SETFL, O_NONBLOCK) == 0);
    const std::vector<char> bytes(1 << 16);
    while (::write(sender.get(), bytes.data(), bytes.size()) > 0) {
    }
    constexpr linger wait{1, 300};
    REQUIRE(::setsockopt(sender.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait) == 0);
    return sender;
}
/// A Unix socket in which a descriptor is on its way.
unique_fd holder_of(const unique_fd& inner) {
    unique_fd outer;
    unique_fd entrance;
    REQUIRE_FALSE(cohort::base::make_socket_pair(outer, entrance));
    constexpr std::byte one{};
    REQUIRE_FALSE(
        cohort::base::send_message(entrance.get(), std::span(&one, 1), std::array{inner.get()}));
    return outer;
}

bool is_open(int descriptor) { return ::fcntl(descriptor, F_GETFD) != -1; }

}  // namespace

TEST_CASE("dispose: closes a descriptor, on another thread") {
    const cohort::test::leak_guard guard;  // waits until all is closed
    watched_end end;
    dispose(std::move(end.writing));
    CHECK(end.is_closed_within(60'000));
}

TEST_CASE("dispose: destroys an object on another thread") {
    const cohort::test::leak_guard guard;  // waits until all is closed
    struct tells {
        std::promise<std::thread::id> where;
        ~tells() { where.set_value(std::this_thread::get_id()); }
    };
    auto object = std::make_shared<tells>();
    auto where = object->where.get_future();
    dispose(std::shared_ptr<const void>(std::move(object)));
    CHECK(where.get() != std::this_thread::get_id());
}

TEST_CASE("dispose: who has given something can wait until it is closed") {
    const cohort::test::leak_guard guard;  // waits until all is closed
    for (int i = 0; i < 100; ++i) {
        watched_end end;
        dispose(std::move(end.writing));
        await_disposed(60s);
        CHECK(end.is_closed_within(0));
    }
}

TEST_CASE("dispose: who waits for a close that hangs waits only for so long") {
    const cohort::test::leak_guard guard;  // waits until all is closed
    const blocked_disposal hangs;
    watched_end end;
    dispose(std::move(end.writing));
    await_disposed(1ms);
    CHECK_FALSE(end.is_closed_within(0));
    await_disposed(60s);  // returns at once, because nothing was given since
}

TEST_CASE("dispose: what hangs does not keep later descriptors open") {
    const cohort::test::leak_guard guard;  // waits until all is closed
    const blocked_disposal hangs;
    bool closed = false;
    for (int i = 0; i < 6000 && !closed; ++i) {  // the queue waits a second for what hangs
        watched_end end;
        dispose(std::move(end.writing));
        closed = end.is_closed_within(10);
    }
    CHECK(closed);
}

TEST_CASE("dispose: a lingering socket inside another one keeps nothing waiting") {
    const cohort::test::leak_guard guard;  // waits until all is closed
    unique_fd peer;
    auto outer = holder_of(lingering_socket(peer));
    struct tells {
        std::promise<void> is_destroyed;
        ~tells() { is_destroyed.set_value(); }
    };
    auto object = std::make_shared<tells>();
    auto destroyed = object->is_destroyed.get_future();
    dispose(std::move(outer));
    // By the same thread, because no later call starts another one.
    dispose(std::shared_ptr<const void>(std::move(object)));
    CHECK(destroyed.wait_for(60s) == std::future_status::ready);
}

TEST_CASE("dispose: a large record of a worker is closed on another thread, a small one here") {
    const cohort::test::leak_guard guard;  // waits until all is closed
    // If this machine is so slow that the queue takes the blocked thread for one that hangs, the
    // record may be closed before the check.
    bool was_open = false;
    for (int i = 0; i < 20 && !was_open; ++i) {
        const blocked_disposal busy;
        auto large = file_of(off_t{4} << 20);
        const int of_large = large.get();
        cohort::groups::close_record(std::move(large));
        was_open = is_open(of_large);
        auto other = file_of(4096);
        const int of_small = other.get();
        cohort::groups::close_record(std::move(other));
        CHECK_FALSE(is_open(of_small));
    }
    CHECK(was_open);
}

}  // namespace dispose_test
