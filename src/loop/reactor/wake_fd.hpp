// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::loop {

/// Ends the sleep of one thread, from any thread. That takes at most one system call a sleep, and
/// none when the sleeper is awake or has already been called.
///
/// The sleeper calls fall_asleep(), then blocks while called() is false and the descriptor get()
/// has no event, then calls get_up(). It watches get() edge-triggered, so that nobody has to read
/// the counter back.
///
/// Why no wake() is lost: `state_` is changed only by read-modify-writes, so there is one order of
/// all changes. A wake() comes
///  - before fall_asleep(), which finds `called` and returns false: the sleeper does not block;
///  - between fall_asleep() and get_up(): the first such wake() finds `asleep` and writes, after
///    its exchange. Whatever was written before, this write is a new edge, so the sleeper returns
///    and finds `called`. Later calls of wake() find `called` and rely on that write;
///  - after get_up(), and so before the next fall_asleep(), which is the first case.
/// What the waker did before wake() is visible after wait(), because get_up() reads the value of
/// the last of these exchanges, and each is part of the release sequence of those before it.
/// A write may come late, when its sleep has ended for another reason. It then interrupts a later
/// sleep, which finds called() false and blocks again.
class wake_fd {
public:
    /// @param count  the counter's first value; not zero: readable at once.
    explicit wake_fd(unsigned count = 0) {
        std::error_code error;
        fd_ = base::out_of_stdio(base::unique_fd(::eventfd(count, EFD_NONBLOCK | EFD_CLOEXEC)),
                                 error);
        if (error)
            throw std::system_error(error, "eventfd");
    }

    int get() const noexcept { return fd_.get(); }

    void wake() noexcept {
        if (state_.exchange(called_, std::memory_order_acq_rel) != asleep_)
            return;
        const int kept = errno;  // the caller may be a signal handler
        const std::uint64_t one = 1;
        // Not ::write, because that is a cancellation point: a thread that ended there, after the
        // exchange, would take the wake-up of all other callers with it. Apart from EINTR the write
        // cannot fail: each sleep has at most one, and the counter holds 2^64 - 2 of them.
        while (::syscall(SYS_write, fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
        }
        errno = kept;
    }

    /// @return false: wake() has been called since the last get_up(), do not block.
    bool fall_asleep() noexcept {
        int before = awake_;  // state_ may be asleep_, if an exception ended the last wait()
        state_.compare_exchange_strong(before, asleep_, std::memory_order_acq_rel);
        return before != called_;
    }
    bool called() const noexcept { return state_.load(std::memory_order_acquire) == called_; }
    void get_up() noexcept { state_.exchange(awake_, std::memory_order_acq_rel); }

private:
    static constexpr int awake_ = 0, asleep_ = 1, called_ = 2;
    static_assert(std::atomic<int>::is_always_lock_free, "wake() runs in signal handlers");

    base::unique_fd fd_;
    std::atomic<int> state_ = awake_;
};

}  // namespace cohort::loop
