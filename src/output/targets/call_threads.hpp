// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"
#include "loop/runtime/runtime.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <limits>
#include <list>
#include <mutex>
#include <string>

namespace cohort::output {

/// The threads for calls on files of others, which may never return: a write(2) to a dead file
/// server, a read(2) of a pipe whose lock a worker holds. One thread makes all calls, in turn,
/// because threads count against the limits of processes that workers need. More threads come only
/// when all present ones have been in a call for a while: as many again each time, so that a few
/// looks pass over any number of calls that hang. A thread that has had nothing to do for a second
/// ends.
class call_threads {
public:
    /// Makes the next call. @param scratch  memory of the thread, with anything in it
    /// @return true: call it again. Must not throw.
    using step = std::function<bool(std::string& scratch)>;

    /// @param most  threads; if all of them hang, all calls wait
    explicit call_threads(loop::engine& loop,
                          loop::time_point::duration hung_after = std::chrono::milliseconds(10),
                          std::size_t most = std::numeric_limits<std::size_t>::max())
        : loop_(loop), hung_after_(hung_after), most_(most) {}
    call_threads(const call_threads&) = delete;
    call_threads& operator=(const call_threads&) = delete;

    /// Those of a process, whose engine is `loop`. Made if need be and leaked on purpose.
    static call_threads& of(loop::engine& loop);

    /// Calls `next` on a thread until it returns false. Safe from any thread.
    /// @throws std::system_error, std::bad_alloc  there is no thread and none can be started, or
    ///         there is no memory; `next` is not called
    /// @param of  for withdraw()
    void submit(step next, const void* of = nullptr);
    /// Forgets what was submitted with this `of`. @return false: it is being called, or is over
    bool withdraw(const void* of) noexcept;
    /// Runs `work` on a thread, then `then` on the loop. If no thread can be started, only `then`
    /// runs. `work` is destroyed before `then` runs. Neither may throw.
    void run(loop::task work, loop::task then);

private:
    struct job {
        step next;
        const void* of;
        loop::time_point since{};  // when the present step began
    };
    void work();
    void work_off(std::unique_lock<std::mutex>& lock, std::string& scratch);
    void add_thread();
    void add_threads();
    void watch() noexcept;
    void look();

    loop::engine& loop_;
    const loop::time_point::duration hung_after_;
    const std::size_t most_;
    std::mutex mutex_;
    std::condition_variable came_;
    std::list<job> waiting_;
    std::list<job> begun_;  // one for each thread that is not idle
    std::size_t threads_ = 0;
    bool watches_ = false;
};

/// Starts the output thread, if need be. Calls on it that hang do not hold up each other.
/// @throws std::system_error  the thread or a reactor can't be made
void start_output(loop::runtime& runtime);

}  // namespace cohort::output
