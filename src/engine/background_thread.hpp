// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "engine/engine.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

namespace cohort::engine {

/// Work that takes too long for the engine's thread, on a thread of its own.
class background_thread {
public:
    /// When its thread is there: while there is work, or from the first work on.
    enum class thread { comes_and_goes, stays };

    explicit background_thread(engine& loop, thread kind = thread::comes_and_goes) noexcept
        : loop_(loop), kind_(kind) {}

    /// Starts the thread unless it is there: one that stays is there for all later work. Safe from
    /// any thread. @return false: none can be had
    bool start() noexcept;
    /// Runs `work`, one at a time and in order, then `then` on the engine's thread. Where no thread
    /// can be had, `then` alone. `work` is destroyed before `then` runs. From the engine's thread.
    /// Neither may throw.
    void run(task work, task then);
    /// Held by the thread whenever it does anything but wait for work, as the engine's turn is, and
    /// for the same reason. A fork of the host takes that of bounded work.
    std::mutex& turn() noexcept { return turn_; }
    /// What it does has lasted for seconds, and may never end.
    bool is_late(time_point now) noexcept;

private:
    struct job {
        task work;
        task then;
    };
    bool start_thread_if_none() noexcept;
    void work_off();
    void await_job();
    std::optional<job> take_job();

    engine& loop_;
    const thread kind_;
    std::mutex turn_;
    std::mutex mutex_;
    std::condition_variable came_;
    std::deque<job> jobs_;
    bool has_thread_ = false;
    std::optional<time_point> begun_;  // the work that is being done
};

}  // namespace cohort::engine
