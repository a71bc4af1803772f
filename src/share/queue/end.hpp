// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/files/descriptor.hpp"
#include "base/sys/descriptors.hpp"
#include "loop/engine/engine.hpp"
#include "loop/waits/watcher.hpp"
#include "share/channel/channel.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/queue_end.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace cohort::share {

/// Which ends of a queue a process uses. Until the queue is shared with another process it may use
/// both. Then its first call decides, and the other end is given up, because a reader that held a
/// writing end itself would never see the end of the stream.
class roles {
public:
    enum class answer {
        allowed,
        gives_up_other,  // allowed, and from now on the other end is not needed
        refused,         // this end was given up
    };

    answer read() noexcept { return use(role::reader); }
    answer write() noexcept { return use(role::writer); }
    /// Whether the process still has this end. Changes nothing.
    bool may_read() const noexcept { return role_ != role::writer; }
    bool may_write() const noexcept { return role_ != role::reader; }

    /// The queue is passed to another process.
    void share() noexcept { shared_ = true; }
    /// @return false: too late, an end was given up
    bool keep_both() noexcept {
        if (role_ != role::undecided)
            return role_ == role::both;
        role_ = role::both;
        return true;
    }

private:
    enum class role { undecided, reader, writer, both };

    answer use(role wanted) noexcept {
        if (role_ == role::undecided) {
            if (!shared_)
                return answer::allowed;
            role_ = wanted;
            return answer::gives_up_other;
        }
        return role_ == wanted || role_ == role::both ? answer::allowed : answer::refused;
    }

    role role_ = role::undecided;
    bool shared_ = false;
};

/// An operation that waits at an end of a queue.
struct waiter {
    using deadline = std::optional<detail::steady_time_point>;
    waiter(detail::receiver operation, deadline d) : to(std::move(operation)), until(d) {}
    waiter(detail::receiver operation, deadline d, std::shared_ptr<outgoing> put)
        : to(std::move(operation)), until(d), message(std::move(put)) {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    /// On the engine's thread a put that was given up is freed in the background.
    ~waiter();

    const detail::receiver to;
    deadline until;
    std::shared_ptr<outgoing> message;  // of a put; null: still being written aside
    // How long a put that is written aside may wait once that is done; empty for other operations.
    std::optional<detail::steady_duration> patience;
    std::optional<loop::timer_id> timer;  // only on the engine's thread
};

/// The operations that wait at one end, in the order of their calls.
class line {
public:
    bool empty() const noexcept { return waiting_.empty(); }
    void join(std::shared_ptr<waiter> w) { waiting_.push_back(std::move(w)); }
    const std::shared_ptr<waiter>& first() const noexcept { return waiting_.front(); }
    std::shared_ptr<waiter> take_first() {
        auto taken = std::move(waiting_.front());
        waiting_.pop_front();
        return taken;
    }
    bool has(detail::operation_id id) const {
        return std::ranges::any_of(waiting_, [id](const auto& w) { return w->to.id == id; });
    }
    /// @return null: it does not wait here
    std::shared_ptr<waiter> take(detail::operation_id id) {
        const auto found =
            std::ranges::find_if(waiting_, [id](const auto& w) { return w->to.id == id; });
        if (found == waiting_.end())
            return nullptr;
        auto taken = std::move(*found);
        waiting_.erase(found);
        return taken;
    }

private:
    std::deque<std::shared_ptr<waiter>> waiting_;
};

class both_ends;

/// One end of a queue in this process. All handles of the end share it.
///
/// What it keeps beside the descriptors belongs to one process: a forked copy starts with nothing
/// received and nobody waiting, or the copy would have received messages a second time.
class end : public loop::watched, public std::enable_shared_from_this<end> {
public:
    using side = detail::queue_side;
    using description = detail::queue_description;

    end(side which, detail::attachment socket, detail::attachment slots, const description& of);
    end(const end&) = delete;
    end& operator=(const end&) = delete;
    ~end() override;

    void serve() override;

    /// The queue that made this end. Set once, before the end is used.
    std::weak_ptr<both_ends> queue;

    side which() const noexcept { return which_; }
    const description& about() const noexcept { return about_; }

    /// The end's descriptors, kept open for a call.
    struct open_descriptors {
        detail::attachment socket;
        detail::attachment slots_file;  // null: the queue is unbounded
        std::shared_ptr<share::slots> slots;
        description about;

        channel borrow() const noexcept {
            return {*socket, slots.get(), about.largest_inlined, about.carries, about.make};
        }
    };
    /// @throws std::logic_error  close() was called
    /// @throws sharing_error     EBADF: this is a forked copy that did not keep the end
    open_descriptors open();
    /// Gives the end the descriptors with which it has arrived again. They are needed only in a
    /// forked copy, which has closed the end's own.
    void renew(detail::attachment socket, detail::attachment slots_file);
    /// Closes this process' end, for all its handles.
    void close();
    /// Whether this process is a forked copy of the one that made the end. Handles that nobody uses
    /// in a copy stay in its memory, so they do not count.
    bool is_inherited() const noexcept;

    /// What belongs to one process. Only under its mutex.
    struct state {
        explicit state(std::uint64_t of) noexcept : generation(of) {}

        const std::uint64_t generation;
        std::mutex mutex;
        detail::attachment socket;
        detail::attachment slots_file;  // needed to pass the end on
        bool closed = false;
        std::uint64_t received = 0;                         // how many messages so far
        std::deque<detail::queue_message> stored;           // received, and not taken yet
        std::exception_ptr wrong;                           // what the next call throws
        int underway = 0;  // of handlers and calls that may give some back

        /// The descriptors of refused packets. Not only under the mutex.
        struct refused_descriptors {
            std::atomic<std::uint64_t> unclosed = 0;
            std::atomic<bool> are_awaited = false;  // by those in line
        };
        refused_descriptors refused;

        // One at a time waits for the socket: a thread, or the engine for those in line. The others
        // wait for that one, because a packet may hold messages for several.
        line waiting;
        /// Whether a thread waits, or only looks whether there is a packet.
        enum class thread { none, waits, tries };
        thread at_socket = thread::none;
        bool thread_waits() const noexcept { return at_socket != thread::none; }
        std::condition_variable_any changed;  // for threads
        // Wakes the thread that waits for the socket in a poll, when a message is stored. Made
        // when a thread first waits so.
        base::unique_fd stored_event;

        /// What the engine watches the socket for.
        enum class watch { nothing, once, each_receive };
        /// What the engine does for those in line.
        struct service {
            watch armed = watch::nothing;
            std::optional<loop::timer_id> retry;  // serves the line again; on the engine's thread
            bool retries = false;                 // retry is or will be set, as long as a put waits
        };
        service by_engine;
    };
    state& here();
    /// The descriptors of a state that is locked and has them.
    open_descriptors opened(const state& mine) const {
        return {mine.socket, mine.slots_file, slots_, about_};
    }
    channel channel_of(const state& mine) const noexcept {
        return {*mine.socket, slots_.get(), about_.largest_inlined, about_.carries, about_.make};
    }

    /// Noted before other processes may have the end's socket, too. A receive may then wait, even
    /// one that asks not to: the kernel lets one process at a time receive from a socket, and that
    /// one may receive into memory that never comes. So nothing may be locked meanwhile, and the
    /// engine's thread must not do it.
    void give_away() noexcept { is_given_away_ = true; }
    bool is_given_away() const noexcept { return is_given_away_; }

    /// The ticket of the end's socket, see watcher.
    std::uint64_t socket_ticket() const noexcept { return socket_ticket_; }

private:
    void forget_descriptors() noexcept;

    const std::uint64_t socket_ticket_;
    const std::uint64_t born_;  // in which process, see state::generation
    const std::optional<base::file_id> id_;
    const side which_;
    const description about_;
    const std::shared_ptr<share::slots> slots_;  // null: unbounded. A forked copy has it too
    std::atomic<bool> is_given_away_ = false;
    std::atomic<state*> state_;
};

/// The end that has this socket, in this process: the one that it has already, or a new one.
/// @throws codec_error  it has one that is described otherwise
std::shared_ptr<end> end_of(end::side which, const detail::attachment& socket,
                            const detail::attachment& slots_file, const end::description& about);

/// Held while the roles of a queue change. A fork waits for it. Nothing else is locked under it.
std::unique_lock<std::mutex> lock_ends();

/// The calling thread, as the one that waits for the socket of an end, whose state is not locked
/// meanwhile.
class only_waiter {
public:
    using how = end::state::thread;
    only_waiter(end& which, end::state& state, std::unique_lock<std::mutex>& lock, how way) noexcept
        : which_(which), state_(state), lock_(lock) {
        state_.at_socket = way;
        lock_.unlock();
    }
    only_waiter(const only_waiter&) = delete;
    only_waiter& operator=(const only_waiter&) = delete;
    ~only_waiter() {
        lock_.lock();
        state_.at_socket = how::none;
        state_.changed.notify_all();
        if (!state_.waiting.empty())
            loop::serve_soon(which_.shared_from_this());
    }

private:
    end& which_;
    end::state& state_;
    std::unique_lock<std::mutex>& lock_;
};

/// Lets the engine serve an end when its socket has what those in line wait for. `state` is the
/// end's own, and locked.
/// @param wanted  what the last try of a put came to
void arm(const std::shared_ptr<end>& which, end::state& state, step wanted);

/// Called when no put waits: receives by others are no events any more.
void disarm(const std::shared_ptr<end>& which, end::state& state);

}  // namespace cohort::share
