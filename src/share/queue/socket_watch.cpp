// SPDX-License-Identifier: BSL-1.0
#include "share/queue/socket_watch.hpp"

#include "loop/waits/watcher.hpp"

#include <sys/epoll.h>

namespace cohort::share {

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

}  // namespace cohort::share
