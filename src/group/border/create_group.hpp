// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/services/services.hpp"
#include "loop/runtime/runtime.hpp"
#include "output/routes/routes.hpp"
#include "output/streams/group_streams.hpp"
#include "protocol/order/caller.hpp"

#include <cohort/detail/border.hpp>

#include <memory>

namespace cohort::detail::inline v0_1 {

/// Checks whether this process may start such a group, and names the group.
/// @throws what create_group() throws
groups::services& services_for(spawn_plan& plan);

/// Reads what workers inherit from the calling thread.
/// @throws spawn_error  the thread is more confined than any worker can be, or no descriptor is
///                      left
protocol::caller_ref caller_of(groups::services& services);

/// Makes the streams of a group, and starts the output thread if they need it.
/// @throws std::invalid_argument  see output::make_routes
/// @throws spawn_error            the output thread can't be started
std::shared_ptr<output::group_streams> make_streams(
    loop::runtime& runtime, const spawn_plan& plan, const output::route_names& names,
    output::routes_of machine = output::routes_of::program);

/// Makes a group whose caller is known. Runs no code of the user's but console().only().
/// @param plan  checked by services_for()
/// @throws what make_streams() throws
group_ref make_group(groups::services& services, spawn_plan plan, const output::route_names& names,
                     protocol::caller_ref from,
                     output::routes_of machine = output::routes_of::program);

/// As create_group(), for the workers at this host of a group of another program. What they print
/// for that program goes into the group's queue, or to group_streams::relay_to().
/// @throws what create_group() throws
group_ref create_group_at_host(spawn_plan plan);
/// The streams of a group that was created here.
std::shared_ptr<output::group_streams> streams_of(const group_ref& group);

}  // namespace cohort::detail::inline v0_1
