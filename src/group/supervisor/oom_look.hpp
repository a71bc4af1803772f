// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"
#include "loop/threads/background_thread.hpp"
#include "start/cgroup/worker_cgroup.hpp"

#include <memory>
#include <optional>

namespace cohort::groups {

/// Finds out whether the kernel's out-of-memory killer killed a process in a worker's cgroup.
/// Called on the engine's thread, which does not wait for the answer.
/// @param side  the thread that reads the cgroup's files, because the kernel may take milliseconds
/// @param then  called once, on the engine's thread; with nothing if no answer comes in time
void find_oom_kill(loop::engine& loop, loop::background_thread& side,
                   std::shared_ptr<const start::worker_cgroup> cgroup,
                   base::callback<void(std::optional<start::oom_kill>)> then);

}  // namespace cohort::groups
