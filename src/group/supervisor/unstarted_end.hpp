// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/supervisor/worker_process.hpp"

#include <cohort/detail/border.hpp>

#include <memory>
#include <string>

namespace cohort::groups {

/// A worker that was to start after others have ended, and has not.
struct unstarted_worker {
    int index;
    const detail::start_failure* failure;     // null: its group is stopped
    std::shared_ptr<const std::string> work;  // what it was to do
    bool is_timed_out;                        // because of its time limit, or its group's
    time_point now;
};

/// Its outcome, which has no pid, and its verdict.
worker_end end_of_unstarted(unstarted_worker worker);

}  // namespace cohort::groups
