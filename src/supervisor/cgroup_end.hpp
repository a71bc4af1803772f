// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "cgroup/group_cgroups.hpp"
#include "engine/background_thread.hpp"
#include "engine/engine.hpp"

#include <functional>
#include <memory>

namespace cohort::supervisor {

/// Kills what is left in a group's cgroup and removes it, again and again until that is done. From
/// the engine's thread, which does not wait for it.
/// @param side   does it: the kernel may take milliseconds
/// @param until  by then `then` is called if it has been tried once; the cgroup is tried further
/// @param then   called once, on the engine's thread; may be empty
void end_cgroup(engine::engine& loop, engine::background_thread& side,
                std::shared_ptr<cgroups::group_cgroup> ended, engine::time_point until,
                std::function<void()> then);

}  // namespace cohort::supervisor
