// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "share/queue/end.hpp"

#include <memory>

namespace cohort::share {

/// Whether the engine would have to receive from a socket that other processes may have, too. The
/// end's state is locked.
bool would_receive(const end& which, const end::state& state) noexcept;

/// Receives in a call of the output loop, because another thread takes that loop over if the call
/// hangs. Stores what came, then runs `then` on the engine's thread. Nobody else waits for the
/// socket meanwhile. The end's state is locked, but not when `then` runs.
void receive_in_call(const std::shared_ptr<end>& which, end::state& state,
                     base::callback<void(step)> then);

}  // namespace cohort::share
