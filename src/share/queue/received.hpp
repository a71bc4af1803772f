// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "base/sys/descriptors.hpp"
#include "share/queue/end.hpp"

#include <cohort/detail/queue_end.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include <sys/epoll.h>

namespace cohort::share {

/// An event each time a message of a queue is received, seen from its writing end. A socket reports
/// that it can be written whenever a message has left it, even if it could be written before
/// (unix_write_space() of the kernel), as long as at most a quarter of its buffer is filled.
///
/// No event comes where there is no room for the descriptor, or the buffer is filled further.
class receive_edge {
public:
    explicit receive_edge(int writer) noexcept {
        std::error_code error;
        epoll_ = base::out_of_stdio(base::unique_fd(::epoll_create1(EPOLL_CLOEXEC)), error);
        epoll_event event{};
        event.events = EPOLLOUT | EPOLLET;
        if (error || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, writer, &event) != 0)
            epoll_.reset();
        clear();
    }

    /// Readable after an event, until clear(). -1: there are no events.
    int descriptor() const noexcept { return epoll_ ? epoll_.get() : -1; }
    void clear() noexcept {
        epoll_event event;
        (void)!::epoll_wait(epoll_ ? epoll_.get() : -1, &event, 1, 0);
    }

private:
    base::unique_fd epoll_;
};

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

/// What an end receives. The descriptors of a packet that was none are closed in the background.
/// While many of an end's are not closed, it receives nothing more: whoever floods it with such
/// packets would else fill the table of this process, because closing takes longer than receiving.
struct incoming_of : incoming {
    explicit incoming_of(end& by) noexcept : of(by) {}
    incoming_of(const incoming_of&) = delete;
    incoming_of& operator=(const incoming_of&) = delete;
    ~incoming_of();
    end& of;
};

/// Whether the end must receive nothing now. Any thread.
bool has_many_unclosed(const end::state& state) noexcept;
/// Whether the end must receive nothing now. If so, those in line are served when enough is closed.
/// The state is locked.
bool await_closes(end::state& state) noexcept;

/// Whether the engine would have to receive from a socket that other processes may have, too. The
/// end's state is locked.
bool would_receive(const end& which, const end::state& state) noexcept;

/// Receives in a call of the output loop, because another thread takes that loop over if the call
/// hangs. Stores what came, then runs `then` on the engine's thread. Nobody else waits for the
/// socket meanwhile. The end's state is locked, but not when `then` runs.
void receive_in_call(const std::shared_ptr<end>& which, end::state& state,
                     base::callback<void(step)> then);

}  // namespace cohort::share
