// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/unique_fd.hpp"

#include <atomic>
#include <mutex>
#include <system_error>

namespace cohort::forkserver {

/// One start's waiting for the fork server, as another thread may end it.
class forkserver_wait {
public:
    /// Makes what it waits by. For the waiting thread, before all else.
    std::error_code open();
    /// The waiting thread has done with it.
    void close() noexcept;
    /// It waits no more for a server to be ready; what it has asked for it takes. Any thread.
    void hold() noexcept;
    /// A server that keeps it waiting from now on gets SIGKILL. Any thread.
    void give_up() noexcept;

    bool is_held() const noexcept { return held_; }
    bool is_given_up() const noexcept { return given_up_; }
    /// Readable after ring(), hold() and give_up().
    int event() const noexcept { return event_.get(); }
    void ring() noexcept;
    void silence() noexcept;

private:
    std::mutex mutex_;  // of the event's life
    sys::unique_fd event_;
    std::atomic<bool> held_ = false;
    std::atomic<bool> given_up_ = false;
};

}  // namespace cohort::forkserver
