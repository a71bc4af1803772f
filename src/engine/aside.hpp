// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "engine/engine.hpp"

#include <deque>
#include <functional>
#include <mutex>
#include <optional>

namespace cohort::engine {

/// Work that takes too long for the engine's thread, on a thread that is there while there is any.
class aside {
public:
    explicit aside(engine& loop) noexcept : loop_(loop) {}

    /// Runs `work`, one at a time and in order, then `then` on the engine's thread. Where no thread
    /// can be had, `then` alone. From the engine's thread. Neither may throw.
    void run(task work, task then);
    /// What it does has lasted for seconds, and may never end.
    bool is_late(time_point now) noexcept;

private:
    struct job {
        task work;
        task then;
    };
    void work_off();

    engine& loop_;
    std::mutex mutex_;
    std::deque<job> jobs_;
    bool has_thread_ = false;
    std::optional<time_point> begun_;  // the work that is being done
};

}  // namespace cohort::engine
