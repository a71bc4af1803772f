// SPDX-License-Identifier: BSL-1.0
// A manual_executor whose handlers wait for each other, fork, or post when they are destroyed.
#include "live_support.hpp"

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace manual_trouble_test {

namespace {

using namespace cohort::test;

/// An edge-triggered watch of a manual_executor.
class edges {
public:
    explicit edges(cohort::manual_executor& loop) : loop_(loop) {
        epoll_event watched{EPOLLIN | EPOLLET, {}};
        REQUIRE(::epoll_ctl(epoll_, EPOLL_CTL_ADD, loop.fd(), &watched) == 0);
    }
    edges(const edges&) = delete;
    edges& operator=(const edges&) = delete;
    ~edges() { ::close(epoll_); }

    /// Waits for an edge, then runs what is queued.
    void run() const {
        epoll_event edge;
        if (::epoll_wait(epoll_, &edge, 1, -1) == 1)
            loop_.run_ready();
    }

private:
    cohort::manual_executor& loop_;
    const int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
};

/// A handler that does something when it is destroyed without having been called.
class at_end {
public:
    explicit at_end(std::function<void()> f) : f_(std::move(f)) {}
    at_end(at_end&& other) noexcept : f_(std::exchange(other.f_, nullptr)) {}
    ~at_end() {
        if (f_)
            f_();
    }
    template <class... Results>
    void operator()(Results&&...) {
        f_ = nullptr;
    }

private:
    std::function<void()> f_;
};

TEST_CASE("manual trouble: a handler's own loop hears of what is queued behind the handler") {
    const watchdog bounded;
    cohort::manual_executor loop;
    const edges watch(loop);
    bool answered = false;
    asio::post(loop, [&] {
        asio::post(loop, [&] { answered = true; });
        while (!answered)
            watch.run();
    });
    asio::post(loop, [] {});
    while (!answered)
        watch.run();
}

TEST_CASE("manual trouble: while a handler waits, another thread hears of what is posted") {
    const watchdog bounded;
    cohort::manual_executor loop;
    const edges watch(loop);
    std::promise<void> waits;
    std::promise<void> goes_on;
    std::atomic<bool> done = false;
    asio::post(loop, [&] {
        waits.set_value();
        goes_on.get_future().wait();
        done = true;
        asio::post(loop, [] {});  // for the thread that waits for an edge
    });
    asio::post(loop, [] {});
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
        threads.emplace_back([&] {
            while (!done)
                watch.run();
        });
    waits.get_future().wait();
    asio::post(loop, [&] { goes_on.set_value(); });
    for (auto& thread : threads)
        thread.join();
}

TEST_CASE("manual trouble: a copy that a handler makes runs nothing, and takes no event") {
    const watchdog bounded;
    cohort::manual_executor loop;
    const pid_t parent = ::getpid();
    int status = -1;
    bool readable = false;
    int ran = 0;
    asio::post(loop, [&] {
        const pid_t copy = ::fork();
        if (copy == 0)
            return;
        ::waitpid(copy, &status, 0);
        pollfd watched{loop.fd(), POLLIN, 0};
        readable = ::poll(&watched, 1, 0) == 1;
    });
    asio::post(loop, [&] { ++ran; });
    std::size_t count = 0;
    try {
        count = loop.run_ready();
    } catch (const std::system_error& error) {
        ::_exit(error.code() == std::errc::no_child_process && ran == 0 ? 0 : 1);
    }
    if (::getpid() != parent)
        ::_exit(2);
    CHECK(count == 2);
    CHECK(status == 0);
    CHECK(readable);
    CHECK(ran == 1);
}

TEST_CASE("manual trouble: what is destroyed at the executor's end may post and wait") {
    const watchdog bounded;
    auto loop = std::make_unique<cohort::manual_executor>();
    auto& its = *loop;
    auto timer = std::make_shared<asio::steady_timer>(its);
    bool wait_destroyed = false;
    asio::post(its, at_end([&, timer] {
                   timer->expires_after(std::chrono::hours(1));
                   timer->async_wait(at_end([&] {
                       wait_destroyed = true;
                       asio::post(its, [] {});
                   }));
               }));
    timer.reset();
    loop.reset();
    CHECK(wait_destroyed);
}

}  // namespace

}  // namespace manual_trouble_test
