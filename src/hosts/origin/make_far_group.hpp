// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>
#include <cohort/detail/hosts_border.hpp>
#include <cohort/detail/plan.hpp>

#include <memory>
#include <vector>

namespace cohort::multihost {

/// Makes a group whose workers run on hosts. Called on the caller's thread; starts nothing.
/// @param among  places of the hosts among those that were reached together
/// @param plan   its settings say how the workers are divided; its settings.machines is kept until
///               the group has ended
/// @throws what create_group() throws
/// @throws std::invalid_argument  something in the plan can't leave this machine
/// @throws host_lost              one of the hosts is lost
detail::group_ref make_far_group(const detail::hosts_ref& hosts, const std::vector<int>& among,
                                 detail::spawn_plan plan);

}  // namespace cohort::multihost
