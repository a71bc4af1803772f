// SPDX-License-Identifier: BSL-1.0
#include "share/queue/end.hpp"

#include "base/files/descriptor.hpp"
#include "base/files/dispose.hpp"
#include "base/files/fork_held.hpp"
#include "base/files/settings.hpp"
#include "base/files/sweeper.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/fork_mark.hpp"
#include "base/sys/socket.hpp"
#include "loop/engine/engine.hpp"
#include "loop/waits/watcher.hpp"

#include <cohort/errors.hpp>

#include <cerrno>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include <sys/epoll.h>

namespace cohort::share {

waiter::~waiter() {
    if (message && message->is_slow_to_free() && loop::engine::is_this_thread())
        base::dispose(std::shared_ptr<const void>(std::move(message)));
}

using loop::watcher;

void arm(const std::shared_ptr<end>& which, end::state& state, step wanted) {
    auto& here = watcher::own();
    if (which->which() == end::side::reader) {
        if (!state.thread_waits())
            here.arm(which, which->socket_ticket(), *state.socket, EPOLLIN | EPOLLONESHOT);
        return;
    }
    if (wanted == step::done)
        return;
    using watch = end::state::watch;
    if (wanted == step::without_slot) {
        // The socket can be written, which is an event at once: to arm it again would be the next.
        if (state.by_engine.armed == watch::each_receive)
            return;
        here.arm(which, which->socket_ticket(), *state.socket, EPOLLOUT | EPOLLET);
        state.by_engine.armed = watch::each_receive;
        return;
    }
    // A socket without events shows that the last reader is gone.
    here.arm(which, which->socket_ticket(), *state.socket,
             (wanted == step::must_wait ? EPOLLOUT : 0u) | EPOLLONESHOT);
    state.by_engine.armed = watch::once;
}

void disarm(const std::shared_ptr<end>& which, end::state& state) {
    if (state.by_engine.armed == end::state::watch::each_receive && state.socket)
        watcher::forget(which->socket_ticket(), *state.socket);
    state.by_engine.armed = end::state::watch::nothing;
}

namespace {

/// The ends of this process by their sockets, so that an end that arrives twice is one.
struct end_table {
    std::mutex mutex;
    std::map<base::file_id, std::weak_ptr<end>> ends;
};
end_table& known_ends() { return base::fork_held<end_table>::get(); }

/// What is left of a closed end. To close it closes what other processes have put into the queue.
struct remains {
    detail::attachment socket;
    detail::attachment slots_file;
    std::unique_ptr<end::state> state;
    bool may_hold_names = false;  // unread messages, which go with a reading end, may

    void close() noexcept {
        socket.reset();
        slots_file.reset();
        state.reset();
        if (may_hold_names)
            base::names_sweeper().ask();
    }
};

struct closed_elsewhere {
    explicit closed_elsewhere(remains&& w) noexcept : what(std::move(w)) {}
    closed_elsewhere(const closed_elsewhere&) = delete;
    closed_elsewhere& operator=(const closed_elsewhere&) = delete;
    ~closed_elsewhere() {
        const base::exiting_owner makes_last_close(what.socket ? *what.socket : -1);
        what.close();
    }
    remains what;
};

/// To close may take as long as another process likes, if it has put something in that was not
/// read. The engine's thread does not do it. A thread of the user's does it at once, because its
/// next put expects to find no reader; only with something unread the last close comes a moment
/// later, on the thread of an exiting_owner, or in the background if there can be none.
void close(remains what) noexcept {
    if (!what.socket || !base::is_open(what.socket))
        return what.close();
    if (!loop::engine::is_this_thread()) {
        const bool may_wait = base::is_readable(*what.socket);
        const base::exiting_owner makes_last_close(may_wait ? *what.socket : -1);
        if (!may_wait || makes_last_close)
            return what.close();
    }
    try {
        base::dispose(std::make_shared<const closed_elsewhere>(std::move(what)));
    } catch (const std::bad_alloc&) {
        what.close();
    }
}

}  // namespace

std::unique_lock<std::mutex> lock_ends() { return std::unique_lock(known_ends().mutex); }

end::end(side which, detail::attachment socket, detail::attachment slots_file,
         const description& of)
    : socket_ticket_(loop::watcher::next_ticket()), born_(base::process_generation()),
      id_(base::id_of(*socket)), which_(which), about_(of),
      slots_(slots_file ? std::make_shared<slots>(*slots_file, of.capacity) : nullptr),
      state_(new state(born_)) {
    state& mine = *state_.load();
    base::close_at_once(socket);  // close() sees to what may wait
    mine.socket = std::move(socket);
    mine.slots_file = std::move(slots_file);
}

end::~end() {
    forget_descriptors();
    {
        const auto guard = lock_ends();
        if (const auto known = known_ends().ends.find(*id_);
            known != known_ends().ends.end() && known->second.expired())
            known_ends().ends.erase(known);
    }
    state* const last = state_.load();
    remains left{std::move(last->socket), std::move(last->slots_file), nullptr, false};
    if (last->generation == base::process_generation()) {
        left.state.reset(last);
        left.may_hold_names = which_ == side::reader;
    }  // else it is leaked, because its mutex may be locked
    share::close(std::move(left));
}

bool end::is_inherited() const noexcept { return born_ != base::process_generation(); }

/// Before the descriptors are closed.
void end::forget_descriptors() noexcept {
    state& mine = *state_.load();
    if (mine.generation != base::process_generation())
        return;
    if (mine.socket)
        loop::watcher::forget(socket_ticket(), *mine.socket);
}

end::state& end::here() {
    const auto generation = base::process_generation();
    state* seen = state_.load(std::memory_order_acquire);
    if (seen->generation == generation)
        return *seen;
    const auto guard = lock_ends();
    seen = state_.load(std::memory_order_acquire);
    if (seen->generation == generation)
        return *seen;
    // The parent's state is leaked: its mutex may be locked.
    auto fresh = std::make_unique<state>(generation);
    if (seen->socket && base::is_open(seen->socket))
        fresh->socket = std::move(seen->socket);
    if (seen->slots_file && base::is_open(seen->slots_file))
        fresh->slots_file = std::move(seen->slots_file);
    fresh->closed = seen->closed;
    seen = fresh.release();
    state_.store(seen, std::memory_order_release);
    return *seen;
}

end::open_descriptors end::open() {
    state& mine = here();
    const std::lock_guard guard(mine.mutex);
    if (mine.closed)
        throw std::logic_error("cohort: this end of the queue was closed by this process");
    if (!mine.socket || (about_.capacity > 0 && !mine.slots_file))
        base::refuse("queue", EBADF,
                     "this process is a forked copy, and the queue's descriptors are closed in "
                     "it; name the queue: closure(f).keep(array, queue)");
    return {mine.socket, mine.slots_file, slots_, about_};
}

void end::renew(detail::attachment socket, detail::attachment slots_file) {
    state& mine = here();
    const std::lock_guard guard(mine.mutex);
    const auto no_fork = lock_ends();
    if (mine.closed)
        return;
    if (!mine.socket) {
        base::close_at_once(socket);
        mine.socket = std::move(socket);
    }
    if (!mine.slots_file)
        mine.slots_file = std::move(slots_file);
}

void end::close() {
    remains left;  // closed after the locks are released
    left.may_hold_names = which_ == side::reader;
    state& mine = here();
    bool is_awaited = false;
    {
        const std::lock_guard guard(mine.mutex);
        forget_descriptors();
        is_awaited = !mine.waiting.empty();
        const auto no_fork = lock_ends();
        mine.closed = true;
        left.socket.swap(mine.socket);
        left.slots_file.swap(mine.slots_file);
    }
    share::close(std::move(left));
    mine.changed.notify_all();
    if (is_awaited)
        loop::serve_soon(shared_from_this());
}

std::shared_ptr<end> end_of(end::side which, const detail::attachment& socket,
                            const detail::attachment& slots_file, const end::description& about) {
    const auto id = base::id_of(*socket);
    if (!id)
        base::refuse("queue", EBADF, "its descriptor is closed");
    std::shared_ptr<end> found;  // destroyed after the lock is released
    {
        const auto guard = lock_ends();
        if (const auto known = known_ends().ends.find(*id); known != known_ends().ends.end())
            found = known->second.lock();
        if (!found) {
            found = std::make_shared<end>(which, socket, slots_file, about);
            known_ends().ends[*id] = found;
            return found;
        }
    }
    // The description may come from any process, and what the end receives is read by the handles.
    if (found->which() != which)
        throw codec_error("the other end of a queue");
    if (found->about().type != about.type)
        throw codec_error("a queue of values of another type");
    if (found->about().capacity != about.capacity)
        throw codec_error("a queue of another capacity");
    if (found->is_inherited())
        found->renew(socket, slots_file);
    return found;
}

}  // namespace cohort::share
