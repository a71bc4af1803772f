// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "loop/engine/engine.hpp"
#include "pool/dispatch/dispatcher.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include <sys/types.h>

namespace cohort::pools {

/// How much memory the workers of a pool have added since they were ready. Looks after tasks, on
/// another thread, and not too often. A member of the pool's state; belongs to the engine's thread.
class memory_looks {
public:
    /// @param is_wanted       whether anybody wants to know
    /// @param shares_private  whether workers begin with memory that they share with others until
    ///                        they change it
    memory_looks(loop::engine& loop, bool is_wanted, bool shares_private) noexcept
        : loop_(loop), is_wanted_(is_wanted), shares_private_(shares_private) {}

    /// @param pool   kept until the last look is over
    /// @param found  called with the bytes that a worker has added
    void begin(std::weak_ptr<const void> pool,
               base::callback<void(worker_id, std::uint64_t)> found);

    /// @param go_on  called when its memory has been looked at, because what its first task adds
    ///               counts; at once where nobody wants to know
    void is_ready(worker_id worker, pid_t pid, base::callback<void()> go_on);
    /// It has finished a task.
    void finished(worker_id worker);
    void ended(worker_id worker);

private:
    struct memory {
        std::uint64_t anonymous = 0;
        std::uint64_t changed = 0;  // private pages; 0: not looked at
    };
    struct looked_at {
        pid_t pid = 0;
        memory first;
        time_point last{};
        time_point last_changed{};
        bool goes_on = false;
        bool again = false;            // a task has finished since the look began
        base::callback<void()> go_on;  // of is_ready()
        std::optional<loop::timer_id> later;
    };
    static memory read(pid_t pid, bool with_changed) noexcept;
    void look(worker_id worker);
    void found(worker_id worker, const memory& now);

    loop::engine& loop_;
    const bool is_wanted_;
    const bool shares_private_;
    std::weak_ptr<const void> pool_;
    base::callback<void(worker_id, std::uint64_t)> found_;
    std::map<worker_id, looked_at> workers_;
};

}  // namespace cohort::pools
