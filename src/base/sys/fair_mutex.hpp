// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>

namespace cohort::base {

/// A mutex that threads get in the order in which they asked for it. With std::mutex a thread that
/// unlocks and locks again and again can keep the others waiting without end.
class fair_mutex {
public:
    void lock() noexcept {
        const auto ticket = last_ticket_.fetch_add(1, std::memory_order_relaxed);
        for (auto now = served_.load(std::memory_order_acquire); now != ticket;
             now = served_.load(std::memory_order_acquire))
            served_.wait(now, std::memory_order_acquire);
    }
    void unlock() noexcept {
        served_.fetch_add(1, std::memory_order_release);
        served_.notify_all();
    }
    /// unlock() in a forked copy of this process: the threads that waited are not there, so their
    /// turns are passed over.
    void unlock_in_copy() noexcept { served_ = last_ticket_.load(); }

private:
    std::atomic<std::uint32_t> last_ticket_ = 0;
    std::atomic<std::uint32_t> served_ = 0;
};

}  // namespace cohort::base
