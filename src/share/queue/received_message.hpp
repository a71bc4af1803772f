// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/queue/end.hpp"

#include <cohort/detail/queue_end.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace cohort::share {

/// While a call has messages that it may give back, nobody may wait for the socket alone.
class underway {
public:
    /// The end's state is locked.
    underway(end& of, end::state& state)
        : of_(of.shared_from_this()), generation_(state.generation) {
        ++state.underway;
    }
    underway(const underway&) = delete;
    underway& operator=(const underway&) = delete;
    ~underway();

private:
    std::shared_ptr<end> of_;
    const std::uint64_t generation_;
};

/// A message on its way to a handler. If the handler never runs, because its context is destroyed,
/// the message goes back to its end, for the next call.
class received_message {
public:
    /// The end's state is locked.
    received_message(std::shared_ptr<end> from, end::state& state, detail::queue_message message);
    received_message(const received_message&) = delete;
    received_message& operator=(const received_message&) = delete;
    ~received_message();

    /// On a thread of the user's. @throws what load() throws; sharing_error: there is no room for
    /// its descriptors yet, and it is there for the next call
    detail::taken_message take();
    /// Brings a large payload into memory, for take(). What is wrong with it take() throws.
    void load_early() noexcept;
    bool is_quick() const noexcept;

private:
    void give_back() noexcept;

    std::shared_ptr<end> from_;  // null: taken
    const std::uint64_t generation_;
    detail::queue_message message_;
    std::shared_ptr<const underway> underway_;
    std::exception_ptr wrong_;
};

/// Takes a message of an end whose state is locked: one that is stored, else one of its socket. The
/// lock is released meanwhile if other processes may have the end, too. Only a thread of the user's
/// may do that, see end::give_away(), and nobody else may wait for the socket then.
/// @throws what receive() throws
step take_one(end& from, end::state& state, std::unique_lock<std::mutex>& lock,
              detail::queue_message& into);

/// Wakes the threads that wait at an end whose state is locked.
void wake_threads(end::state& state) noexcept;
/// Stores a message in its place: at the end, if it has no number yet. The state is locked.
void store(end::state& state, detail::queue_message&& message);

}  // namespace cohort::share
