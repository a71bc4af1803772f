// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "group/starts/cpu_places.hpp"
#include "group/starts/work_texts.hpp"
#include "start/cgroup/worker_cgroup.hpp"
#include "start/forkserver/forkserver_client.hpp"

#include <cohort/detail/border.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace cohort::groups {

using detail::start_failure;

/// A child that never became a worker, or is no longer wanted as one. It may have run for a while.
struct unwanted_child {
    base::unique_fd pidfd;
    pid_t pid = 0;  // 0: the child failed before it could make children
};

/// The result of one start. After a failure `pidfd` may be set: then its child has exited, or was
/// killed, and must be reaped.
struct start_report {
    int index = -1;
    pid_t pid = 0;
    base::unique_fd pidfd;
    bool calls_function = false;  // else it executes a command
    process_group group = process_group::own;
    base::unique_fd record;
    base::unique_fd stacks;   // the read end of the pipe for the worker's stacks
    base::unique_fd results;  // where the descriptors arrive that the worker's result holds
    std::chrono::steady_clock::time_point started;
    std::optional<start_failure> failure;
    bool is_killed = false;                       // by group_start::kill_in_flight()
    bool is_late = false;                         // that was because of worker_time_limit
    std::shared_ptr<const work_texts> works;      // of all workers; set in each report
    std::shared_ptr<start::group_cgroup> cgroup;  // the group's; set in each report
    std::shared_ptr<const start::worker_cgroup> own_cgroup;  // the worker's; null: it has none
    cpu_places::lease cpus;                                  // its part of the CPUs; may be null
    std::vector<unwanted_child> unwanted;  // killed, or failed before a second try: to be reaped
};

/// What a start waits for now, so that another thread can end the wait.
struct start_slots {
    // The pidfd of a child that is being started, see start_by_exec(); -1: it has begun.
    std::atomic<int> child = -1;
    // Of copies: the end of the pipe by which they tell that they begin.
    std::atomic<int> reports = -1;
    start::forkserver_wait server;
};

}  // namespace cohort::groups
