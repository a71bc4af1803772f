// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "pool/dispatch/dispatcher.hpp"

#include <cohort/pool_stats.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include <sys/types.h>

namespace cohort::pools {

/// The part of a pool that other threads may read while the engine works on the pool.
class shown_pool {
public:
    /// @param room  how many calls may wait
    explicit shown_pool(std::uint64_t room) noexcept : room_(room) {}

    // Calls that wait for a worker. Counted on the thread that submits, so that try_submit() knows
    // at once whether there is room:

    void begin_wait() noexcept { ++waiting_; }
    void end_wait() noexcept { --waiting_; }
    /// begin_wait(), if the queue has room. @return false: it has none, or the pool takes no calls
    bool try_begin_wait() noexcept {
        auto waiting = waiting_.load();
        do
            if (!is_open_ || !has_room_beside(waiting))
                return false;
        while (!waiting_.compare_exchange_weak(waiting, waiting + 1));
        return true;
    }

    // On the engine's thread:

    struct worker {
        int slot = -1;
        pid_t pid = 0;
        worker_state state = worker_state::starting;
        const char* function = nullptr;  // null: it runs none
        time_point since;
        std::uint64_t tasks = 0;
        std::uint64_t memory = 0;
    };
    void show(const dispatcher& of, time_point now) {
        idle_ = static_cast<std::uint64_t>(of.idle());
        is_open_ = of.is_open();
        const std::lock_guard lock(mutex_);
        stats_.size = of.live();
        stats_.idle = of.idle();
        stats_.throttled = of.throttled(now);
        counted_ = of.counted();
    }
    /// Changes what is shown of a worker, which is shown from then on.
    template <class Change>
    void change(worker_id id, Change how) {
        const std::lock_guard lock(mutex_);
        how(workers_[id]);
    }
    void forget(worker_id id) {
        const std::lock_guard lock(mutex_);
        workers_.erase(id);
    }

    // On any thread:

    pool_stats stats() const;
    /// By their slots.
    std::vector<pool_worker> workers() const;

private:
    /// An idle worker takes a call at once.
    bool has_room_beside(std::uint64_t waiting) const noexcept {
        const std::uint64_t idle = idle_;
        return waiting < idle || waiting - idle < room_;
    }

    const std::uint64_t room_;
    std::atomic<std::uint64_t> waiting_ = 0;
    std::atomic<std::uint64_t> idle_ = 0;
    std::atomic<bool> is_open_ = true;
    mutable std::mutex mutex_;
    pool_stats stats_;
    counts counted_;
    std::map<worker_id, worker> workers_;
};

}  // namespace cohort::pools
