// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "loop/engine/engine.hpp"

#include <cohort/error_record.hpp>

#include <mutex>
#include <vector>

#include <sys/types.h>

namespace cohort::groups {

/// Finds the processes of process groups. Reads /proc once for all groups that are asked for at the
/// same time, because a read takes as long as the host has processes.
class process_looks {
public:
    using listener = base::callback<void(std::vector<activity>)>;

    explicit process_looks(loop::engine& loop) noexcept : loop_(loop) {}
    process_looks(const process_looks&) = delete;
    process_looks& operator=(const process_looks&) = delete;

    /// Those of a process, whose engine is `loop`. Made if need be and leaked on purpose.
    static process_looks& of(loop::engine& loop);

    /// Calls `then` on the engine's thread with what protocol::processes_of_groups() says of the
    /// leader's group. Without a thread to read /proc it is called when the next look has one. Call
    /// it on the engine's thread.
    void ask(pid_t leader, listener then);

private:
    struct question {
        pid_t leader;
        listener then;
    };
    void answer();

    loop::engine& loop_;
    std::mutex mutex_;
    std::vector<question> asked_;
};

}  // namespace cohort::groups
