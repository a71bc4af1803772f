// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"
#include "loop/threads/background_thread.hpp"
#include "start/cgroup/group_cgroups.hpp"
#include "start/cgroup/worker_cgroup.hpp"

#include <memory>

namespace cohort::groups {

/// Kills what is left in a group's cgroup and removes the cgroup; tries again until that is done.
/// Called on the engine's thread, which does not wait for it.
/// @param side   the thread that does it, because the kernel may take milliseconds
/// @param until  from then on `then` is called after one attempt, or a second later if that hangs,
///               even if the cgroup is still there; the attempts go on
/// @param then   called once, on the engine's thread; may be empty
void end_cgroup(loop::engine& loop, loop::background_thread& side,
                std::shared_ptr<start::group_cgroup> ended, loop::time_point until,
                base::callback<void()> then);

/// The same for the cgroup of a worker, which stays no longer than one attempt of it.
void end_cgroup(loop::engine& loop, loop::background_thread& side,
                std::shared_ptr<const start::worker_cgroup> ended, loop::time_point until,
                base::callback<void()> then);

/// Removes the cgroup of a worker that is over, if nothing is left in it, and a few of those of
/// earlier workers. Nobody waits for that.
/// @param ended  null: it had none
void end_cgroup(loop::background_thread& side, std::shared_ptr<const start::worker_cgroup> ended);

}  // namespace cohort::groups
