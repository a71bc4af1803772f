// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/sync/barrier.hpp"

#include <cohort/exit_status.hpp>

#include <memory>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cohort::groups {

/// The barriers that a group's workers were given. Nobody is to wait there for a worker that does
/// not come. Belongs to the engine's thread.
class group_barriers {
public:
    group_barriers(std::vector<std::shared_ptr<share::barrier>> given, int workers)
        : given_(std::move(given)) {
        for (const auto& barrier : given_)
            barrier->page.note_workers(workers);
    }

    void worker_ended(pid_t pid, int index, const exit_status& how) {
        for (const auto& barrier : given_)
            if (barrier->page.take_drop(pid))
                barrier->announce();  // it may have been killed before it could
            else
                barrier->break_by({share::barrier_cause::kind::worker_ended, index, how});
    }
    /// @param index  -1: it is not known which worker has not started
    void not_started(int index) {
        for (const auto& barrier : given_)
            barrier->break_by({share::barrier_cause::kind::not_started, index, {}});
    }
    void clear() noexcept { given_.clear(); }

private:
    std::vector<std::shared_ptr<share::barrier>> given_;
};

}  // namespace cohort::groups
