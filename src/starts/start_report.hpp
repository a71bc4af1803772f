// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "cgroup/worker_cgroup.hpp"
#include "forkserver/forkserver_wait.hpp"
#include "sys/unique_fd.hpp"

#include <cohort/detail/engine.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace cohort::starts {

using detail::start_failure;

/// A child that is no worker, or that nobody wants as one any more. It may have run for a while.
struct unwanted_child {
    sys::unique_fd pidfd;
    pid_t pid = 0;  // 0: it failed before it could have children
};

/// What became of one start. On failure `pidfd` may be set: a child that has exited and must be
/// reaped.
struct start_report {
    int index = -1;
    pid_t pid = 0;
    sys::unique_fd pidfd;
    sys::unique_fd record;
    sys::unique_fd stacks;  // what the worker writes there can be read from it
    std::chrono::steady_clock::time_point started;
    std::optional<start_failure> failure;
    std::shared_ptr<cgroups::group_cgroup> cgroup;             // of the group, with each report
    std::shared_ptr<const cgroups::worker_cgroup> own_cgroup;  // of the worker; null: it has none
    std::vector<unwanted_child> unwanted;  // killed, or failed before a second try: to be reaped
};

/// What a start waits for, for another thread that is to end it.
struct start_slots {
    std::atomic<int> child = -1;  // a pidfd, see start_by_exec
    forkserver::forkserver_wait server;
};

}  // namespace cohort::starts
