// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <set>

namespace cohort::loop {

/// How long the stop of each live group can take. exit() reads that on its own thread, because a
/// user's executor may hold up the engine's thread. Safe from any thread.
class stop_spans {
public:
    using duration = std::chrono::steady_clock::duration;

    /// A span counts while its entry lives.
    using entry = std::shared_ptr<void>;
    entry add(duration span) {
        std::unique_lock lock(mutex_);
        const auto added = spans_.insert(span);
        lock.unlock();
        return entry(this, [added](stop_spans* all) { all->remove(added); });
    }
    /// Zero when no group lives.
    duration longest() {
        const std::lock_guard lock(mutex_);
        return spans_.empty() ? duration::zero() : *spans_.rbegin();
    }

private:
    void remove(std::multiset<duration>::const_iterator which) {
        const std::lock_guard lock(mutex_);
        spans_.erase(which);
    }

    std::mutex mutex_;
    std::multiset<duration> spans_;
};

}  // namespace cohort::loop
