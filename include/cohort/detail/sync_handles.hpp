// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/patience.hpp>
#include <cohort/detail/placement.hpp>
#include <cohort/detail/shared_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace cohort::share {
class wakeup;
struct barrier;
}  // namespace cohort::share

// The border between events, barriers and mutexes and the compiled library. The bodies stand in
// src/share/sync.
namespace cohort::detail::inline v0_1 {

class encoder;
class decoder;

/// A handle of an event.
class COHORT_API event_handle {
public:
    /// A new event. @throws sharing_error  a limit was met: what() names it
    event_handle();
    // A move copies, so that a call on what was moved from is a call on the same event.
    event_handle(const event_handle&) = default;
    event_handle& operator=(const event_handle&) = default;

    void set() const;
    void clear() const;
    bool is_set() const;
    /// @return false: the time was up, or a stop was asked for
    bool wait(const patience& how_long) const;

    const std::shared_ptr<share::wakeup>& waits_at() const noexcept { return wakeup_; }
    shared_item item() const;
    void write(encoder& to) const;
    static event_handle read(decoder& from);

private:
    explicit event_handle(std::shared_ptr<share::wakeup> w) noexcept : wakeup_(std::move(w)) {}
    std::shared_ptr<share::wakeup> wakeup_;
};

/// A handle of a barrier.
class COHORT_API barrier_handle {
public:
    explicit barrier_handle(std::size_t parties);
    barrier_handle(const barrier_handle&) = default;  // a move copies
    barrier_handle& operator=(const barrier_handle&) = default;

    /// @throws broken_barrier  a worker has ended or did not start, or a party was late
    void arrive_and_wait(std::optional<steady_duration> timeout) const;
    void arrive_and_drop() const;
    std::size_t parties() const noexcept;
    bool broken() const noexcept;

    const std::shared_ptr<share::barrier>& get() const noexcept { return barrier_; }
    const std::shared_ptr<share::wakeup>& waits_at() const noexcept;
    void write(encoder& to) const;
    static barrier_handle read(decoder& from);

private:
    barrier_handle() noexcept = default;
    std::shared_ptr<share::barrier> barrier_;
};

/// Complete with done, failed or aborted.
COHORT_API void await_event(const event_handle& event, const receiver& to);
COHORT_API void await_barrier(const barrier_handle& handle, const receiver& to);
/// Has no effect on an operation that has completed.
/// @param at  what waits_at() of a handle gives; its type is no part of the library's symbols
COHORT_API void cancel_wait(const std::weak_ptr<void>& at, operation_id id) noexcept;

enum class mutex_answer { locked, owner_died, not_locked };

/// A handle of a mutex. Keeps its memory mapped.
class COHORT_API mutex_handle {
public:
    /// A new mutex. @throws sharing_error  a limit was met: what() names it
    mutex_handle();
    mutex_handle(const mutex_handle&) = default;  // a move copies
    mutex_handle& operator=(const mutex_handle&) = default;

    /// @throws std::system_error  resource_deadlock_would_occur: this thread holds it
    mutex_answer lock() const;
    mutex_answer try_lock() const;
    mutex_answer try_lock(steady_duration timeout) const;
    void unlock() const noexcept;

    void write(encoder& to) const;
    static mutex_handle read(decoder& from);

private:
    explicit mutex_handle(shared_memory memory) noexcept : memory_(std::move(memory)) {}
    shared_memory memory_;
};

}  // namespace cohort::detail::inline v0_1
