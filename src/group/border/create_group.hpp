// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/services/services.hpp"
#include "output/routes/routes.hpp"
#include "protocol/order/caller.hpp"

#include <cohort/detail/border.hpp>

namespace cohort::detail::inline v0_1 {

/// Checks whether this process may start such a group, and names the group.
/// @throws what create_group() throws
groups::services& services_for(spawn_plan& plan);

/// Makes a group whose caller is known. Runs no code of the user's but console().only().
/// @param plan  checked by services_for()
/// @throws std::invalid_argument  see output::make_routes
/// @throws spawn_error            the output thread can't be started
group_ref make_group(groups::services& services, spawn_plan plan, const output::route_names& names,
                     protocol::caller_ref from);

}  // namespace cohort::detail::inline v0_1
