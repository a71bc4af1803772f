// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "engine/engine.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <string>

namespace cohort::output {

/// The threads that write files. One thread serves all files, a batch of each in turn, because
/// threads count against the limits of processes that workers need. Another thread comes only when
/// all present ones have been in a write(2) for a while, as that of a dead file server never ends.
/// A thread that has had nothing to do for a second ends.
class call_threads {
public:
    /// Writes the next batch. @param scratch  memory of the thread, with anything in it
    /// @return true: call it again. Must not throw.
    using step = std::function<bool(std::string& scratch)>;

    explicit call_threads(engine::engine& loop,
                          engine::time_point::duration hung_after = std::chrono::milliseconds(10))
        : loop_(loop), hung_after_(hung_after) {}
    call_threads(const call_threads&) = delete;
    call_threads& operator=(const call_threads&) = delete;

    /// Those that look for writers that hang on `loop`, made if need be and leaked on purpose.
    static call_threads& of(engine::engine& loop);

    /// Calls `next` on a writer until it returns false. Safe from any thread.
    /// @throws std::system_error, std::bad_alloc  there is no thread and none can be started, or
    ///         there is no memory; `next` is not called
    void submit(step next);

private:
    struct job {
        step next;
        engine::time_point since{};  // when the present step began
    };
    void work();
    void work_off(std::unique_lock<std::mutex>& lock, std::string& scratch);
    void add_thread();
    void watch() noexcept;
    void look();

    engine::engine& loop_;
    const engine::time_point::duration hung_after_;
    std::mutex mutex_;
    std::condition_variable came_;
    std::list<job> waiting_;
    std::list<job> begun_;  // one for each thread that is not idle
    std::size_t threads_ = 0;
    bool watches_ = false;
};

}  // namespace cohort::output
