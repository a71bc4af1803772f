// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/sync_codec.hpp>
#include <cohort/detail/sync_handles.hpp>
#include <cohort/detail/sync_operations.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <utility>

namespace cohort COHORT_ASIO_NAMESPACE {

/// A flag between processes, at first not set. A handle: copies, also those that travel to other
/// processes as arguments, results and in messages, are the same event. It stays set until
/// somebody clears it; one set() ends all waits that have begun, unless a clear() comes before a
/// waiter has run. A process that is killed or stopped at any moment harms no other one.
///
/// It is one eventfd(2), whose number is not 0 while the event is set. where_it_runs::share gives
/// it to programs in any language, which wait by poll(2) and set it by writing 8 bytes.
///
/// A worker of closure() has closed the event's descriptor, so every call throws sharing_error
/// (EBADF) there unless the event was named: `closure(f).keep(event)`. After fork(2) the event
/// works in the copy.
/// @thread_safety all calls from any thread; assignment as of std::shared_ptr.
/// @source torch.multiprocessing.Event
class event {
public:
    /// A new event. @throws sharing_error  a limit was met
    event() = default;

    /// Sets the flag.
    void set() const { handle_.set(); }
    /// Takes the flag back.
    void clear() const { handle_.clear(); }
    /// Whether the flag is set now.
    bool is_set() const { return handle_.is_set(); }

    /// Blocks until the flag is set.
    void wait() const { (void)handle_.wait(detail::patience::endless()); }
    /// Blocks until the flag is set, or until `timeout` has passed on steady_clock.
    /// @return false: time is up
    /// @throws std::invalid_argument  `timeout` is not a number
    template <class Rep, class Period>
    bool wait(std::chrono::duration<Rep, Period> timeout) const {
        return handle_.wait(detail::patience::until(timeout));
    }
    /// Blocks until the flag is set, or until a stop is requested. @return false: a stop came first
    /// @throws sharing_error  no descriptor is left, by which the stop would end the wait
    bool wait(std::stop_token stop) const {
        return handle_.wait(detail::patience::until(std::move(stop)));
    }
    /// wait() with a completion token: void(std::exception_ptr).
    /// @cancellation every type: stops waiting; the event stays as it is.
    template <class Token>
    auto async_wait(Token&& token) const {
        return detail::begin_call<detail::no_result>(detail::waiting(handle_, detail::await_event),
                                                     std::forward<Token>(token));
    }

private:
    friend struct detail::sync_access;
    explicit event(detail::event_handle handle) noexcept : handle_(std::move(handle)) {}

    detail::event_handle handle_;
};

/// A point at which a number of parties wait for each other, again and again. A handle: copies,
/// also those that travel to other processes as arguments, results and in messages, are the same
/// barrier.
///
/// Pass it to a group as an argument: then nobody waits for a worker that has ended. As soon as a
/// worker of that group ends, in any way, also by returning, and has not dropped out before, the
/// barrier is broken for ever: every wait, now or later, throws broken_barrier with the index of
/// that worker and how it ended. A phase that was complete before stays complete. So a barrier
/// serves the workers of one life; make a new one for the next group. A timeout breaks the barrier
/// as well.
///
/// A party is whoever calls, in any process: a worker, one of its threads, the parent. A worker of
/// closure() is none unless the barrier was named, `closure(f).keep(barrier)`: there the calls that
/// arrive throw sharing_error (EBADF).
/// @thread_safety all calls from any thread; assignment as of std::shared_ptr.
/// @source torch.multiprocessing.Barrier; differs: there the others wait for ever
class barrier {
public:
    /// @param parties  how many wait for each other: from 1 to 65,535
    /// @throws std::invalid_argument  another number
    /// @throws sharing_error          a limit was met
    explicit barrier(std::size_t parties) : handle_(parties) {}

    /// Arrives, and blocks until all parties have.
    /// @throws broken_barrier    a worker has ended or did not start, or a party was late
    /// @throws std::logic_error  every party has dropped out
    void arrive_and_wait() const { handle_.arrive_and_wait(std::nullopt); }
    /// Arrives, and blocks until all parties have. Breaks the barrier when `timeout` has passed on
    /// steady_clock.
    /// @throws broken_barrier         a worker has ended or did not start, or the time was up
    /// @throws std::logic_error       every party has dropped out
    /// @throws std::invalid_argument  `timeout` is not a number
    template <class Rep, class Period>
    void arrive_and_wait(std::chrono::duration<Rep, Period> timeout) const {
        handle_.arrive_and_wait(detail::to_steady(timeout));
    }
    /// Leaves for good: the others wait for one party fewer. Does not wait. The worker may then end
    /// without breaking the barrier, so of several threads that are parties the last calls it.
    void arrive_and_drop() const { handle_.arrive_and_drop(); }
    /// arrive_and_wait() with a completion token: void(std::exception_ptr), which is what
    /// arrive_and_wait() throws. The party arrives when the operation is initiated.
    /// @cancellation every type: takes the arrival back. If the phase is over by then, the
    /// operation completes as if it had not been cancelled.
    template <class Token>
    auto async_arrive_and_wait(Token&& token) const {
        return detail::begin_call<detail::no_result>(
            detail::waiting(handle_, detail::await_barrier), std::forward<Token>(token));
    }

    /// How many parties have not dropped out.
    std::size_t parties() const noexcept { return handle_.parties(); }
    /// Whether every wait from now on throws broken_barrier.
    bool is_broken() const noexcept { return handle_.broken(); }

private:
    friend struct detail::sync_access;
    explicit barrier(detail::barrier_handle handle) noexcept : handle_(std::move(handle)) {}

    detail::barrier_handle handle_;
};

class mutex_lock;

/// Mutual exclusion between processes. A handle: copies, also those that travel to other processes
/// as arguments, results and in messages, are the same mutex. When a process or thread ends while
/// it holds the mutex, the next one gets it: mutex_lock::owner_died() is true there.
///
/// mutex_lock is the only way to lock it, because std::lock_guard has no owner_died(). It can't be
/// awaited, because it must not be held across a co_await. The processes that share a mutex must
/// trust each other: pthread keeps pointers in its memory.
/// @thread_safety all calls from any thread; assignment as of std::shared_ptr.
/// @source torch.multiprocessing.Lock, pthread_mutexattr_setrobust(3); differs: there the
/// others wait for ever
class mutex {
public:
    /// A new mutex, not locked. @throws sharing_error  a limit was met
    mutex() = default;

    /// Never waits. @return empty: somebody holds it, which may be this thread
    /// @throws std::system_error  another process has damaged the mutex
    std::optional<mutex_lock> try_lock() const;
    /// Waits until the mutex is free, or until `timeout` has passed on steady_clock.
    /// @return empty: the time was up
    /// @throws std::system_error  resource_deadlock_would_occur: this thread holds it. Else another
    ///         process has damaged the mutex
    /// @throws std::invalid_argument  `timeout` is not a number
    template <class Rep, class Period>
    std::optional<mutex_lock> try_lock_for(std::chrono::duration<Rep, Period> timeout) const;

private:
    friend class mutex_lock;
    friend struct detail::sync_access;
    explicit mutex(detail::mutex_handle handle) noexcept : handle_(std::move(handle)) {}

    detail::mutex_handle handle_;
};

/// A locked mutex. The destructor unlocks it, on the thread that has locked it.
/// @thread_safety one thread.
class [[nodiscard]] mutex_lock {
public:
    /// Waits until the mutex is free.
    /// @throws std::system_error  resource_deadlock_would_occur: this thread holds it. Else another
    ///         process has damaged the mutex
    explicit mutex_lock(const mutex& locked) : handle_(locked.handle_), answer_(handle_.lock()) {}
    /// Afterwards `other` holds no lock.
    mutex_lock(mutex_lock&& other) noexcept
        : handle_(other.handle_),
          answer_(std::exchange(other.answer_, detail::mutex_answer::not_locked)) {}
    mutex_lock& operator=(mutex_lock&&) = delete;
    ~mutex_lock() { unlock(); }

    /// Whether the owner before ended while it held the mutex, so that what it protects may be half
    /// changed. True for one owner only: repair that before unlocking.
    bool owner_died() const noexcept { return answer_ == detail::mutex_answer::owner_died; }
    /// Unlocks before the destructor does. Does nothing the second time.
    void unlock() noexcept {
        if (std::exchange(answer_, detail::mutex_answer::not_locked) !=
            detail::mutex_answer::not_locked)
            handle_.unlock();
    }

private:
    friend class mutex;
    mutex_lock(const mutex& locked, detail::mutex_answer answer)
        : handle_(locked.handle_), answer_(answer) {}
    static std::optional<mutex_lock> made(const mutex& of, detail::mutex_answer answer) {
        if (answer == detail::mutex_answer::not_locked)
            return std::nullopt;
        return mutex_lock(of, answer);
    }

    detail::mutex_handle handle_;  // its memory is mapped for as long as this thread holds it
    detail::mutex_answer answer_;
};

inline std::optional<mutex_lock> mutex::try_lock() const {
    return mutex_lock::made(*this, handle_.try_lock());
}
template <class Rep, class Period>
std::optional<mutex_lock> mutex::try_lock_for(std::chrono::duration<Rep, Period> timeout) const {
    return mutex_lock::made(*this, handle_.try_lock(detail::to_steady(timeout)));
}

}  // namespace COHORT_ASIO_NAMESPACE
