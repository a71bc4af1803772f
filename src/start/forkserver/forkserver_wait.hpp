// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <system_error>

namespace cohort::start {

/// One start's wait for the fork server, which another thread may end.
class forkserver_wait {
public:
    /// Makes the event that it waits for. Called first, by the waiting thread.
    std::error_code open();
    /// Closes the event. Called by the waiting thread, when it waits no more.
    void close() noexcept;
    /// Ends the wait for a server to be ready; the start still takes the workers that it has asked
    /// for. Any thread.
    void hold() noexcept;
    /// From now on a server that keeps the start waiting gets SIGKILL. Any thread.
    void give_up() noexcept;
    /// From `when` on a server that keeps the start waiting gets SIGKILL. Called by the waiting
    /// thread.
    void give_up_at(std::chrono::steady_clock::time_point when) noexcept { give_up_at_ = when; }

    bool is_held() const noexcept { return held_; }
    /// How many milliseconds poll(2) may wait for the server; then SIGKILL. -1: without an end.
    int patience() const noexcept;
    /// Readable after ring(), hold() and give_up().
    int event() const noexcept { return event_.get(); }
    void ring() noexcept;
    void drain() noexcept;

private:
    std::mutex mutex_;  // protects the making and closing of the event
    base::unique_fd event_;
    std::atomic<bool> held_ = false;
    std::atomic<bool> given_up_ = false;
    std::optional<std::chrono::steady_clock::time_point> give_up_at_;
};

}  // namespace cohort::start
