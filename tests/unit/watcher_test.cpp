// SPDX-License-Identifier: BSL-1.0
// What waits for descriptors where epoll has no room for them.
#include "loop/waits/watcher.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace watcher_test {

using namespace cohort;
using namespace cohort::test;
using loop::watcher;

namespace {

constexpr std::chrono::milliseconds bound(bound_ms);

/// Something with a pipe, which notes when it is served first, and when it is served while there is
/// something to read.
class reader : public loop::watched {
public:
    void serve() override {
        if (served_++ == 0)
            first_.set_value();
        pollfd wanted{pipe_.reader.get(), POLLIN, 0};
        if (::poll(&wanted, 1, 0) == 1 && ready_++ == 0)
            read_.set_value();
    }
    bool await_first() { return first_.get_future().wait_for(bound) == std::future_status::ready; }
    bool await_write() {
        return ::write(pipe_.writer.get(), "x", 1) == 1 &&
               read_.get_future().wait_for(bound) == std::future_status::ready;
    }
    int descriptor() const { return pipe_.reader.get(); }
    std::uint64_t ticket() const { return ticket_; }

private:
    const pipe_ends pipe_ = make_pipe();
    const std::uint64_t ticket_ = watcher::next_ticket();
    int served_ = 0;
    int ready_ = 0;
    std::promise<void> first_;
    std::promise<void> read_;
};

void arm(const std::shared_ptr<reader>& which) {
    watcher::own().arm(which, which->ticket(), which->descriptor(), EPOLLIN | EPOLLET);
}

}  // namespace

TEST_CASE("watcher: what epoll had no room for at first is watched when it is armed again") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    const int status = in_fork([] {
        const auto again = std::make_shared<reader>();
        const auto other = std::make_shared<reader>();
        bool is_denied = false;
        std::promise<void> is_armed;
        auto& here = watcher::own();
        // The engine's thread waits, so that it looks for room only after both were armed.
        here.runtime().loop().post([&] { is_armed.get_future().wait(); });
        std::thread([&] {
            is_denied = deny(SYS_epoll_ctl, ENOSPC);
            arm(again);
            arm(other);
        }).join();
        arm(again);
        is_armed.set_value();
        if (!is_denied)
            return 77;
        if (!other->await_first())
            return 1;
        arm(again);  // throws if the watcher has forgotten that epoll has its descriptor
        return again->await_write() && other->await_write() ? 0 : 2;
    });
    if (status == 77)
        return skip("this machine does not allow seccomp filters");
    CHECK(status == 0);
}

}  // namespace watcher_test
