// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>

#include <sys/types.h>
#include <time.h>

namespace cohort::base {

/// Starts a thread that is never joined, with every signal blocked from its first instruction on,
/// because signals are for the threads of the user. It has the processors and the thread_traits of
/// the main thread.
/// @throws std::system_error  the thread can't be started
void start_thread(std::function<void()> body);

/// How the kernel serves one thread, which may differ from how it serves others of the process. The
/// threads and processes that the thread makes begin with the same.
struct thread_traits {
    /// As sched_setattr(2) takes it. The C library has no such struct before glibc 2.41.
    struct scheduling_attributes {
        std::uint32_t size = 0;  // 0: they could not be read
        std::uint32_t policy = 0;
        std::uint64_t flags = 0;
        std::int32_t nice = 0;
        std::uint32_t priority = 0;
        std::uint64_t times[3] = {};  // of deadlines, which no child has

        bool operator==(const scheduling_attributes&) const = default;
    };
    scheduling_attributes scheduling;
    long io_priority = -1;  // as ioprio_set(2) takes it; -1: it could not be read
    long timer_slack = 0;   // in nanoseconds; 0: not known

    /// What a child of a thread would have.
    /// @param thread  0: this one. The timer slack of others is not known.
    static thread_traits of(pid_t thread) noexcept;
    /// Gives this thread what is known of them. What the kernel refuses stays as it is.
    void take() const noexcept;

    bool operator==(const thread_traits&) const = default;
};

/// Blocks all signals of this thread during its lifetime. Threads that it starts meanwhile begin
/// with that mask. By pthread_sigmask, because the system call would also block the two real-time
/// signals that glibc needs for setuid and cancellation. Async-signal-safe.
class signals_blocked {
public:
    signals_blocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;

private:
    sigset_t before_;
};

/// While such an object lives, a call of this thread that meets RLIMIT_FSIZE fails with EFBIG and
/// nothing else. Else SIGXFSZ, which comes with the error, would end the process.
/// Async-signal-safe.
class no_file_size_signal {
public:
    no_file_size_signal() noexcept;
    no_file_size_signal(const no_file_size_signal&) = delete;
    no_file_size_signal& operator=(const no_file_size_signal&) = delete;
    ~no_file_size_signal();  // leaves errno

private:
    sigset_t before_;  // the thread's mask
    bool was_pending_;
};

/// A mutex that threads get in the order in which they asked for it. With std::mutex a thread that
/// unlocks and locks again and again can keep the others waiting without end.
class fair_mutex {
public:
    void lock() noexcept {
        const auto ticket = last_ticket_.fetch_add(1, std::memory_order_relaxed);
        for (auto now = served_.load(std::memory_order_acquire); now != ticket;
             now = served_.load(std::memory_order_acquire))
            served_.wait(now, std::memory_order_acquire);
    }
    void unlock() noexcept {
        served_.fetch_add(1, std::memory_order_release);
        served_.notify_all();
    }
    /// unlock() in a forked copy of this process: the threads that waited are not there, so their
    /// turns are passed over.
    void unlock_in_copy() noexcept { served_ = last_ticket_.load(); }

private:
    std::atomic<std::uint32_t> last_ticket_ = 0;
    std::atomic<std::uint32_t> served_ = 0;
};

/// A word on which threads wait, also threads of other processes that share its memory (futex(2)).
/// All functions here are async-signal-safe.
using futex = std::atomic<std::uint32_t>;
static_assert(futex::is_always_lock_free && sizeof(futex) == sizeof(std::uint32_t));

/// Returns at once when the word is not `seen`, else when a wake() comes. It may return without
/// either, so look at the word again.
void wait_on(const futex& word, std::uint32_t seen) noexcept;
/// wait_on() with a deadline. @return false: the deadline has passed
/// @param deadline  on CLOCK_MONOTONIC
bool wait_on(const futex& word, std::uint32_t seen, const timespec& deadline) noexcept;
/// Wakes all threads that wait on the word.
void wake(const futex& word) noexcept;

/// The point on CLOCK_MONOTONIC that is `timeout` from now. Async-signal-safe.
timespec deadline_in(std::chrono::nanoseconds timeout) noexcept;

}  // namespace cohort::base
