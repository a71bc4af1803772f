// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::loop {

using time_point = std::chrono::steady_clock::time_point;

/// Names one request. The caller counts up from 1 and uses no value twice, so that the late event
/// of a request that was given up cannot be taken for another request's. The top 16 values are the
/// reactor's own.
using ticket = std::uint64_t;

struct event {
    ticket id;
    int result;  // watch: 0, or -errno. read: bytes, or -errno.
};

/// Hides what differs between kernels. It reports four things: a descriptor became readable, a
/// point in time passed, bytes of a (memory) file were read, another thread called wake().
///
/// Only the thread that made a reactor may use and destroy it; wake() may be called by any thread.
/// A forked copy of the process must not touch it.
///
/// A faulty request (EBADF, EINVAL) is answered by its event, in either reactor. A returned
/// error_code means that the request was not taken, for lack of memory now; it gets no event.
class reactor {
public:
    virtual ~reactor() = default;

    /// Reports `id` once when `fd` is readable. A pidfd is readable when its process may be reaped,
    /// a pipe when it has bytes or no writer any more. `fd` must stay open until the event, then it
    /// may be watched again. A descriptor can have one watch at a time.
    [[nodiscard]] virtual std::error_code watch_readable(ticket id, int fd) = 0;
    /// Reads once, at an explicit offset; a short read is left to the caller. `fd` must stay open
    /// and the buffer must live until the event of `id` has come.
    [[nodiscard]] virtual std::error_code read(ticket id, int fd, std::span<std::byte> buffer,
                                               std::uint64_t offset) = 0;
    /// Blocks until there are events, `until` has passed, or wake() was called (also before this
    /// call), and appends the events to `events`. The engine's thread blocks only here. With an
    /// `until` in the past it does not block and reports what is ready.
    /// @throws std::system_error  the kernel denies waiting from now on (a filter was installed
    ///         later). The reactor is then useless: make its requests again to another one.
    virtual void wait(std::optional<time_point> until, std::vector<event>& events) = 0;
    /// Ends the current or the next wait(). Safe from any thread, async-signal-safe.
    virtual void wake() noexcept = 0;
    virtual const char* name() const noexcept = 0;  // "io_uring", "epoll", "sleeper"
};

/// Both throw std::system_error, which names the call that failed, when the kernel denies it.
std::unique_ptr<reactor> make_io_uring();
std::unique_ptr<reactor> make_epoll();

/// The last resort: it serves only deadlines and wake-ups, and refuses every request. It needs no
/// descriptor, and its wait() never throws.
std::unique_ptr<reactor> make_sleeper();

/// Makes a ring, on every call, to find out whether all that make_io_uring needs works here.
/// @return empty if so, else why not: "io_uring_setup: Operation not permitted (...)"
std::string probe_io_uring();

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

/// What the io_uring and the epoll reactor share: sleeping and being woken. Each implements
/// collect(), which looks for events once.
class reactor_base : public reactor {
public:
    void wait(std::optional<time_point> until, std::vector<event>& events) final;
    void wake() noexcept final { wake_.wake(); }

protected:
    /// The longest time to block; empty: without limit.
    using span_of_time = std::optional<std::chrono::nanoseconds>;

    // Requests of the reactor itself. The highest value is not used: LIBURING_UDATA_TIMEOUT has it.
    static constexpr ticket wake_ticket = std::numeric_limits<ticket>::max() - 1;
    static constexpr ticket cancel_ticket = wake_ticket - 1;
    static constexpr ticket trial_ticket = wake_ticket - 2;

    /// The most that one read(2) transfers (MAX_RW_COUNT), so that every result fits an int.
    static constexpr std::size_t longest_read = 0x7ffff000;
    /// Larger offsets are negative as off_t, and io_uring takes the largest of them for "the file's
    /// position".
    static constexpr std::uint64_t last_offset = std::numeric_limits<std::int64_t>::max();

    explicit reactor_base(unsigned wake_count = 0) : wake_(wake_count) {}

    /// Blocks for `longest` at most and appends what happened to ready_. May return earlier with
    /// nothing.
    virtual void collect(span_of_time longest) = 0;

    wake_fd wake_;
    std::vector<event> ready_;  // happened, not reported yet
};

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
