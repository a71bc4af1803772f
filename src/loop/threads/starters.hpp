// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/credentials.hpp"
#include "base/sys/threads.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
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
/// that made the child. So there are at most `most`: if all of them hang, the next start waits for
/// the first that returns.
class starters {
public:
    using time_point = std::chrono::steady_clock::time_point;
    static constexpr std::size_t most = 32;
    /// The active starter hangs if its step takes longer than this while others wait. Divided by
    /// one more than the starters that hang already, so that 20 of them delay the next start by
    /// less than 100 ms.
    static constexpr std::chrono::milliseconds patience{20};

    /// @throws std::system_error  no thread could be made
    void start();
    /// The first starter, after start(). It waits until that thread has begun. The others confine
    /// their children in the same way.
    const base::known_thread& first() const noexcept;
    /// Queues a job. Safe from any thread. @return whether the job has to wait for another one
    bool submit(std::shared_ptr<start_job> job);
    /// Makes another starter active if jobs wait and the active one hangs.
    /// @return when to look again; none: no job waits
    std::optional<time_point> take_over_if_hung(time_point now);
    /// Makes another starter active if the active one is busy with `job`, which hangs and is given
    /// up.
    void take_over_from(const start_job* job);

private:
    struct starter {
        const start_job* busy_with = nullptr;
        time_point since;
    };
    void add_starter();
    bool take_over();                                        // mutex_ must be locked
    std::chrono::nanoseconds patience_now() const noexcept;  // mutex_ must be locked
    void run(starter& self);
    void await_work(starter& self, std::unique_lock<std::mutex>& lock);
    void call_starters() noexcept;

    std::mutex mutex_;
    base::futex has_begun_{0};  // the first starter
    base::known_thread first_;
    // Counts the calls to the starters. Not a condition variable, which costs one more system call
    // each time, because its mutex counts as contended after a wait.
    base::futex calls_{0};
    std::atomic<int> asleep_ = 0;  // starters that wait for a call, or are about to
    std::deque<std::shared_ptr<start_job>> queue_;
    std::vector<std::unique_ptr<starter>> all_;
    starter* active_ = nullptr;
};

}  // namespace cohort::loop
