// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/starts/start_report.hpp"
#include "protocol/order/worker_order.hpp"
#include "protocol/order/worker_plan.hpp"
#include "start/cgroup/cgroup.hpp"

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

/// Refuses a worker that is to run another program, but is a copy of this one or of its server.
std::optional<start_failure> refuse_executable(const protocol::worker_plan& worker, int index);
/// What the child must know to execute a function worker's program, see start::executing_itself().
protocol::own_program program_of(const protocol::worker_plan& worker, int mark,
                                 int record) noexcept;

}  // namespace cohort::groups
