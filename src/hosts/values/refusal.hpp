// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>

#include <functional>
#include <string>

namespace cohort::multihost {

/// Refuses what means something on this machine only: callables of this process, descriptors, and
/// what is shared through them.
/// @param host  the name of the host on which a worker runs
/// @throws std::invalid_argument  "worker 9 runs on node03: a closure does not leave its machine",
///                                for the lowest such index
void refuse_to_leave(const detail::spawn_plan& plan,
                     const std::function<std::string(int index)>& host);

/// Calls the callables of console().only(), which can't leave this process, and puts what they said
/// in their place. Called on the caller's thread.
/// @throws whatever the callables throw
void settle_consoles(detail::spawn_plan& plan);

}  // namespace cohort::multihost
