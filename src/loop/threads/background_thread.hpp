// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace cohort::loop {

/// A thread for work that takes too long for the engine's thread.
class background_thread {
public:
    /// How long the thread lives: while there is work, or for ever once it was started.
    enum class thread { comes_and_goes, stays };

    explicit background_thread(engine& loop, thread kind = thread::comes_and_goes) noexcept
        : loop_(loop), kind_(kind) {}

    /// Starts the thread if it does not run. A thread that stays then serves all later work. Safe
    /// from any thread. @return false: no thread can be started
    bool start() noexcept;
    /// Runs `work` on the thread, then `then` on the engine's thread. One `work` runs at a time, in
    /// the order of the calls. If no thread can be started, only `then` runs. `work` is destroyed
    /// before `then` runs. `then` may not throw; `work` may throw std::bad_alloc, and is over then.
    /// A fork of the process does not wait for `work`, so what a forked copy uses may be no
    /// half-made change of it. Call it on the engine's thread.
    void run(task work, task then);
    /// Whether the present work has lasted for seconds, and so may never end.
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
    std::mutex mutex_;
    std::condition_variable came_;
    std::deque<job> jobs_;
    bool has_thread_ = false;
    std::optional<time_point> begun_;  // when the present work began; empty: there is none
};

}  // namespace cohort::loop
