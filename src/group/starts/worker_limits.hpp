// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/starts/start_report.hpp"
#include "start/cgroup/cgroup_limits.hpp"

#include <cohort/detail/plan.hpp>

#include <optional>
#include <vector>

namespace cohort::groups {

/// What the plan limits by the cgroups of the group and of its workers.
start::wanted_limits limits_by_cgroups(const detail::spawn_plan& plan);
/// The limits of one worker, in its own cgroup.
std::vector<start::cgroup_limit> limits_by_cgroup(const detail::worker_limits& limits);

/// Refuses a worker that the group could not stop, because it runs as another user.
std::optional<start_failure> refuse_user(const detail::worker_limits& limits, int index);

}  // namespace cohort::groups
