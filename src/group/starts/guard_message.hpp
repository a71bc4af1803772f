// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "start/guardian/guardian_client.hpp"

#include <cohort/detail/plan.hpp>

namespace cohort::groups {

/// What the guardian is to do with a worker or the cgroup of a group with these settings.
protocol::guard_message guard_message_of(const detail::group_settings& settings,
                                         protocol::guarded what);

}  // namespace cohort::groups
