// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/values/group_end.hpp"

#include <cohort/outcome.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace cohort::groups {

/// The part of a group's state that other threads may read while the engine works on the group.
class snapshot {
public:
    explicit snapshot(int size) : pids_(static_cast<std::size_t>(size)), outcomes_(pids_.size()) {}

    int size() const noexcept { return static_cast<int>(pids_.size()); }
    int alive() const noexcept { return alive_.load(); }
    /// How many are to be started later.
    int waiting() const noexcept { return waiting_.load(); }
    void set_waiting(int count) noexcept { waiting_ = count; }

    std::vector<pid_t> pids() const {
        std::lock_guard lock(mutex_);
        return pids_;
    }
    /// The outcomes of the workers that have ended, by index.
    std::vector<outcome> outcomes() const {
        std::unique_lock lock(mutex_);
        const auto end = end_;
        const auto noted = outcomes_;
        lock.unlock();  // copying outcomes may take long, and the engine's thread needs the lock
        if (end)
            return end->report().outcomes;
        std::vector<outcome> ended;
        for (const auto& o : noted)
            if (o)
                ended.push_back(o->whole());
        return ended;
    }

    void note_start(int index, pid_t pid) {
        std::lock_guard lock(mutex_);
        pids_[static_cast<std::size_t>(index)] = pid;
        ++alive_;
    }
    /// A worker has ended, or was given up, and its streams with it. Its outcome comes now.
    void note_exit() noexcept { --alive_; }
    void note_end(std::shared_ptr<const detail::ended_worker> worker) {
        std::lock_guard lock(mutex_);
        outcomes_[static_cast<std::size_t>(worker->left->index)] = std::move(worker);
    }
    /// It was not the worker's last end.
    void forget_end(int index) {
        std::lock_guard lock(mutex_);
        outcomes_[static_cast<std::size_t>(index)] = nullptr;
    }
    /// From now on the outcomes of the group's end replace those noted before.
    void close(std::shared_ptr<const detail::group_end> end) {
        std::lock_guard lock(mutex_);
        end_ = std::move(end);
        outcomes_ = {};
    }
    std::shared_ptr<const detail::group_end> end() const {
        std::lock_guard lock(mutex_);
        return end_;
    }

private:
    mutable std::mutex mutex_;
    std::atomic<int> alive_ = 0;
    std::atomic<int> waiting_ = 0;
    std::vector<pid_t> pids_;
    std::vector<std::shared_ptr<const detail::ended_worker>> outcomes_;
    std::shared_ptr<const detail::group_end> end_;
};

}  // namespace cohort::groups
