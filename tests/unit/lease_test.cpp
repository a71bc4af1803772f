// SPDX-License-Identifier: BSL-1.0
// When the owner of memory learns that nobody uses it any more.
#include "loop/waits/watcher.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "share/cuda/lease.hpp"
#include "sys_support.hpp"

#include <cohort/errors.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <system_error>
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

/// Lets this thread start no thread. @return false: this host does not allow it
bool start_no_threads() { return deny(SYS_clone3, ENOSYS) && deny(SYS_clone, EAGAIN); }

}  // namespace

TEST_CASE("lease: memory is released on a thread of its own, also if none can be started then") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    const int status = in_fork([] {
        std::promise<std::thread::id> released;
        auto used = lease::make([&] { released.set_value(std::this_thread::get_id()); });
        std::promise<bool> denied;
        std::thread::id engine;
        watcher::own().runtime().loop().post([&] {
            engine = std::this_thread::get_id();
            denied.set_value(start_no_threads());
        });
        if (!denied.get_future().get())
            return 77;
        used.reset();
        auto where = released.get_future();
        if (where.wait_for(bound) != std::future_status::ready)
            return 1;
        return where.get() != engine ? 0 : 2;
    });
    if (status == 77)
        return skip("this machine does not allow seccomp filters");
    CHECK(status == 0);
}

TEST_CASE("lease: where no thread can be started that releases memory, there is no lease") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    const int status = in_fork([] {
        (void)watcher::own();
        if (!start_no_threads())
            return 77;
        bool is_released = false;
        try {
            (void)lease::make([&] { is_released = true; });
        } catch (const sharing_error& e) {
            return e.code() == std::errc::resource_unavailable_try_again && !is_released ? 0 : 1;
        }
        return 2;
    });
    if (status == 77)
        return skip("this machine does not allow seccomp filters");
    CHECK(status == 0);
}

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
