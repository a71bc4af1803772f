// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/state/snapshot.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cohort::multihost {

/// Which workers of a group on hosts run, wait for a start or have ended, for those who look at the
/// group. Belongs to the engine's thread.
class far_roll {
public:
    far_roll(groups::snapshot& shown, int workers)
        : shown_(shown), workers_(static_cast<std::size_t>(workers)) {}

    /// @param pid  0: it is to start later
    void started(int index, pid_t pid) {
        auto& worker = at(index);
        if (worker.now == state::runs)
            worker.next = pid;  // the end of the attempt before is still on its way
        if (worker.now == state::ended || worker.now == state::runs)
            return;
        if (pid > 0) {
            shown_.note_start(index, pid);
            set(worker, state::runs);
        } else {
            set(worker, state::waits);
        }
    }
    /// @param restarts  another attempt follows
    void ended(int index, bool restarts) {
        auto& worker = at(index);
        if (worker.now == state::runs)
            shown_.note_exit();
        if (restarts)
            ++worker.attempt;
        set(worker, restarts ? state::waits : state::ended);
        if (const pid_t next = std::exchange(worker.next, 0); restarts && next > 0)
            started(index, next);
    }
    /// The number of its last start, or of the next if it waits.
    int attempt(int index) { return at(index).attempt; }

private:
    enum class state { unknown, waits, runs, ended };
    struct worker {
        state now = state::unknown;
        int attempt = 0;
        pid_t next = 0;  // of its next attempt, which has started
    };

    worker& at(int index) { return workers_[static_cast<std::size_t>(index)]; }
    void set(worker& of, state next) {
        waiting_ += (next == state::waits) - (of.now == state::waits);
        of.now = next;
        shown_.set_waiting(waiting_);
    }

    groups::snapshot& shown_;
    std::vector<worker> workers_;
    int waiting_ = 0;
};

}  // namespace cohort::multihost
