// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/queue/end.hpp"

#include <memory>

namespace cohort::share {

/// Lets the engine serve an end when its socket has what those in line wait for. `state` is the
/// end's own, and locked.
/// @param wanted  what the last try of a put came to
void arm(const std::shared_ptr<end>& which, end::state& state, step wanted);

/// Called when no put waits: receives by others are no events any more.
void disarm(const std::shared_ptr<end>& which, end::state& state);

}  // namespace cohort::share
