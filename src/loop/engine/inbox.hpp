// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "base/sys/patient_containers.hpp"

#include <mutex>
#include <utility>

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
    bool empty() {
        const std::lock_guard lock(mutex_);
        return tasks_.empty();
    }
    /// Runs all tasks, and a number of times those that came meanwhile.
    void run();

private:
    std::mutex mutex_;
    base::patient_vector<task> tasks_;
    bool is_woken_ = false;
};

}  // namespace cohort::loop
