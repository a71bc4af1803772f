// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace cohort::loop {

using task = base::callback<void()>;

/// The tasks that other threads have for an engine's thread, in the order in which they came.
class inbox {
public:
    void add(task t) {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(t));
    }
    /// @return whether the engine has to be woken: nobody has since it last looked into the inbox
    [[nodiscard]] bool claim_wake() {
        const std::lock_guard lock(mutex_);
        return !std::exchange(is_woken_, true);
    }

    // On the engine's thread only:

    bool empty() {
        const std::lock_guard lock(mutex_);
        return next_ == running_.size() && tasks_.empty();
    }
    /// Runs the tasks that have come, and a number of times those that came meanwhile; but for some
    /// milliseconds only, because timers and events wait. The others run in the next call.
    void run();

private:
    bool take_all();

    std::mutex mutex_;
    std::vector<task> tasks_;
    bool is_woken_ = false;
    std::vector<task> running_;  // run() goes through these
    std::size_t next_ = 0;
};

}  // namespace cohort::loop
