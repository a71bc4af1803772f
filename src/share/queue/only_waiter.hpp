// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/waits/watcher.hpp"
#include "share/queue/end.hpp"

#include <mutex>

namespace cohort::share {

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

}  // namespace cohort::share
