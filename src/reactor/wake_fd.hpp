// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/descriptors.hpp"
#include "sys/unique_fd.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::reactor {

/// Ends the sleep of one thread, from any thread, with at most one system call for a sleep: none
/// when the sleeper is up anyway, or has been called already.
///
/// The sleeper calls fall_asleep(), blocks while called() is false and get() stays silent, and then
/// get_up(). It watches get() edge-triggered, so that nobody has to read the counter back.
///
/// Why no wake() is lost: `state_` is changed only by read-modify-writes, so all of them stand in
/// one order. A wake() falls
///  - before fall_asleep(): that finds `called` and returns false, the sleeper does not block;
///  - between fall_asleep() and get_up(): the first such wake() finds `asleep` and writes, after
///    its exchange. The edge is new, whatever was written before, so the sleeper comes back, and
///    finds `called`. Later ones find `called` and rely on that write;
///  - after get_up(): that is before the next fall_asleep().
/// Why what the waker did before wake() is visible after wait(): get_up() reads the value of the
/// last of these exchanges, and each is part of the release sequence of those before it.
/// A write that comes late, when its sleep has ended otherwise, only ends a later sleep's block:
/// called() is false, the sleeper blocks again.
class wake_fd {
public:
    /// @param count  the counter at first; not zero means readable.
    explicit wake_fd(unsigned count = 0) {
        std::error_code error;
        fd_ =
            sys::out_of_stdio(sys::unique_fd(::eventfd(count, EFD_NONBLOCK | EFD_CLOEXEC)), error);
        if (error)
            throw std::system_error(error, "eventfd");
    }

    int get() const noexcept { return fd_.get(); }

    void wake() noexcept {
        if (state_.exchange(called_, std::memory_order_acq_rel) != asleep_)
            return;
        const int kept = errno;  // a signal handler may be calling
        const std::uint64_t one = 1;
        // Not ::write: that is a cancellation point, and a thread that ended there, after the
        // exchange, would take along the wake-up of all the others. It cannot fail otherwise: only
        // the sleeper's own edge counts, and the counter holds 2^64 - 2 of them.
        while (::syscall(SYS_write, fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
        }
        errno = kept;
    }

    /// @return false: wake() has been called since the last get_up(), do not block.
    bool fall_asleep() noexcept {
        int before = awake_;  // or asleep_, when an exception ended the last wait()
        state_.compare_exchange_strong(before, asleep_, std::memory_order_acq_rel);
        return before != called_;
    }
    bool called() const noexcept { return state_.load(std::memory_order_acquire) == called_; }
    void get_up() noexcept { state_.exchange(awake_, std::memory_order_acq_rel); }

private:
    static constexpr int awake_ = 0, asleep_ = 1, called_ = 2;
    static_assert(std::atomic<int>::is_always_lock_free, "wake() runs in signal handlers");

    sys::unique_fd fd_;
    std::atomic<int> state_ = awake_;
};

}  // namespace cohort::reactor
