// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/futex.hpp"
#include "base/sys/patient_containers.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace cohort::loop {

/// The start of one group, one worker in each step.
class start_job : public std::enable_shared_from_this<start_job> {
public:
    virtual ~start_job() = default;
    /// Starts the next worker and reports it. Blocks until the child has executed its program.
    /// @return true: there are more steps
    virtual bool step() noexcept = 0;
};

/// The starter threads. One of them is active: it makes one child at a time, a step of each job in
/// turn. The others are spares.
///
/// A start that hangs before exec, for example because the program's file system does not answer,
/// hangs the active starter. Then another one becomes active; the old one is a spare when it
/// returns. No starter ever ends, because the parent-death signal of a child is bound to the thread
/// that made the child.
class starters {
public:
    /// @throws std::system_error  no thread could be made
    void start();
    /// Queues a job. Safe from any thread. @return whether the job has to wait for another one
    bool submit(std::shared_ptr<start_job> job);
    /// Makes another starter active if jobs wait and the active one began its step before `since`.
    /// @return whether jobs wait
    bool take_over_if_hung(std::chrono::steady_clock::time_point since);
    /// Makes another starter active if the active one is busy with `job`, which hangs and is given
    /// up.
    void take_over_from(const start_job* job);

private:
    struct starter {
        const start_job* busy_with = nullptr;
        std::chrono::steady_clock::time_point since;
    };
    void add_starter();
    void take_over();  // mutex_ must be locked
    void run(starter& self);
    void await_work(starter& self, std::unique_lock<std::mutex>& lock);
    void call_starters() noexcept;

    std::mutex mutex_;
    // Counts the calls to the starters. Not a condition variable, which costs one more system call
    // each time, because its mutex counts as contended after a wait.
    base::futex calls_{0};
    std::atomic<int> asleep_ = 0;  // starters that wait for a call, or are about to
    base::patient_deque<std::shared_ptr<start_job>> queue_;
    std::vector<std::unique_ptr<starter>> all_;
    starter* active_ = nullptr;
};

}  // namespace cohort::loop
