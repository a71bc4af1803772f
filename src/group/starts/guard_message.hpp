// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "start/guardian/guardian_client.hpp"

#include <cohort/detail/plan.hpp>

namespace cohort::groups {

/// What the guardian is to do with a worker or the cgroup of a group with these settings.
protocol::guard_message guard_message_of(const detail::group_settings& settings,
                                         protocol::guarded what);
/// The same for a worker of a group that has a keeper: it is ended by that, and by the guardian
/// only if that has taken too long after the death of this process.
protocol::guard_message guard_message_of_kept();

}  // namespace cohort::groups
