// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/reactor/reactor.hpp"

#include <atomic>
#include <memory>

namespace cohort::loop {

/// The reactor that an engine uses now. It is replaced where the kernel denies it, because a
/// seccomp filter was installed, and where another thread takes over, because a ring belongs to the
/// thread that made it. All requests have to be made again then.
///
/// A reactor that was replaced is leaked, because the kernel may still use it and other threads may
/// be in its wake(), unless retire() is called.
class current_reactor {
public:
    reactor* get() const noexcept { return now_.load(); }
    reactor* operator->() const noexcept { return get(); }
    /// Wakes the present one. Safe from any thread.
    void wake() noexcept;

    // On the thread that uses it:

    /// Makes the best one that can be made now. @throws std::exception
    void make_best();
    /// Whether epoll serves or has served, so that only the last resort is left.
    bool had_epoll() const noexcept { return had_epoll_; }
    /// @return false: epoll can't be made now, for example for lack of descriptors, and the last
    ///         resort serves
    [[nodiscard]] bool change_to_epoll();
    void change_to_last_resort() noexcept { now_ = last_resort_.get(); }
    /// Destroys one that was replaced, on the thread that made it.
    void retire(reactor* replaced) noexcept;

private:
    std::atomic<reactor*> now_ = nullptr;
    std::atomic<int> wakers_ = 0;  // threads that are in wake()
    const std::unique_ptr<reactor> last_resort_ = make_sleeper();
    bool had_epoll_ = false;
};

}  // namespace cohort::loop
