// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/futex.hpp"

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace cohort::engine {

/// The start of one group, one worker at a step.
class start_job : public std::enable_shared_from_this<start_job> {
public:
    virtual ~start_job() = default;
    /// Starts the next worker and reports it. Blocks until the child has executed. @return true:
    /// there is more to do
    virtual bool step() noexcept = 0;
};

/// The starter threads. One of them starts, one child at a time and the jobs in turn; the others
/// are spares.
///
/// A start that hangs before exec (a program on a file system that does not answer) hangs its
/// starter: then a fresh one takes over, and the old one is a spare when it returns. None of them
/// ever ends: the parent-death signal of a child is bound to the thread that made it.
class starters {
public:
    /// @throws std::system_error  no thread could be made
    void start();
    /// Queues a job. Safe from any thread. @return whether it has to wait for another
    bool submit(std::shared_ptr<start_job> job);
    /// Lets a fresh starter take over when the present one has been at one start since before
    /// `since` while others wait. @return whether anybody waits still
    bool take_over_if_hung(std::chrono::steady_clock::time_point since);
    /// The same for a job that hangs and is given up, whether or not anybody waits.
    void take_over_from(const start_job* job);

private:
    struct starter {
        const start_job* busy_with = nullptr;
        std::chrono::steady_clock::time_point since;
    };
    void add_starter();
    void take_over();  // under the lock
    void run(starter& self);
    void await_work(starter& self, std::unique_lock<std::mutex>& lock);
    void call_starters() noexcept;

    std::mutex mutex_;
    // A condition variable costs one call of the kernel more each time: after a wait the mutex counts
    // as contended.
    sys::futex calls_{0};
    std::atomic<int> asleep_ = 0;  // how many wait, or are about to
    std::deque<std::shared_ptr<start_job>> queue_;
    std::vector<std::unique_ptr<starter>> all_;
    starter* active_ = nullptr;
};

}  // namespace cohort::engine
