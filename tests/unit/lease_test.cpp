// SPDX-License-Identifier: BSL-1.0
// When the owner of memory learns that nobody uses it any more.
#include "loop/waits/watcher.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "share/cuda/lease.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include <sys/epoll.h>
#include <sys/syscall.h>

namespace lease_test {

using namespace cohort;
using namespace cohort::test;
using loop::watcher;
using share::lease;

namespace {

constexpr std::chrono::milliseconds bound(bound_ms);

/// Notes when the watcher has served it and, before, all that was served with it.
class served_note : public loop::watched {
public:
    void serve() override {
        auto& here = watcher::own();
        if (!std::exchange(is_served_, true))
            here.runtime().loop().post([this, &here] {
                // After all functions that were called meanwhile.
                here.callbacks().run([this] { served_.set_value(); }, [] {});
            });
    }
    bool await() { return served_.get_future().wait_for(bound) == std::future_status::ready; }

private:
    bool is_served_ = false;
    std::promise<void> served_;
};

}  // namespace

TEST_CASE("lease: where epoll has no room for a watch, nothing is released before the end") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    const int status = in_fork([] {
        const auto released = std::make_shared<std::promise<void>>();
        const auto releases = std::make_shared<std::atomic<int>>(0);
        const auto note = std::make_shared<served_note>();
        const auto pipe = make_pipe();
        detail::attachment used;
        bool is_denied = false;
        std::thread([&] {
            auto& here = watcher::own();
            is_denied = deny(SYS_epoll_ctl, ENOSPC);
            used = lease::make([=] {
                if (++*releases == 1)
                    released->set_value();
            });
            here.arm(note, watcher::next_ticket(), pipe.reader.get(), EPOLLIN | EPOLLONESHOT);
        }).join();
        if (!is_denied)
            return 77;
        if (!note->await())
            return 1;
        if (*releases != 0)
            return 2;
        used.reset();
        if (released->get_future().wait_for(bound) != std::future_status::ready)
            return 3;
        return *releases == 1 ? 0 : 4;
    });
    if (status == 77)
        return skip("this machine does not allow seccomp filters");
    CHECK(status == 0);
}

}  // namespace lease_test
