// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"
#include "loop/threads/starters.hpp"

#include <atomic>
#include <memory>

namespace cohort::loop {

/// The starters of a process. While starts wait, the engine looks whether one hangs; then another
/// starter takes over.
class watched_starters {
public:
    explicit watched_starters(engine& watcher) noexcept : watcher_(watcher) {}

    /// @throws std::system_error  no thread could be made
    void start() { starters_.start(); }
    /// The first of them, after start().
    const base::known_thread& first() const noexcept { return starters_.first(); }
    /// Queues a job. Safe from any thread. If the job has to wait, this wakes the engine; else the
    /// report of the start does.
    void submit(std::shared_ptr<start_job> job);
    /// Gives up a job that hangs, so that the next start does not wait for it.
    void give_up(const start_job& job) { starters_.take_over_from(&job); }

private:
    void watch();
    void look_at(starters::time_point when);

    engine& watcher_;
    starters starters_;
    std::atomic<bool> is_watched_ = false;
};

}  // namespace cohort::loop
