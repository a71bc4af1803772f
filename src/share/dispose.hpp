// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/unique_fd.hpp"

namespace cohort::share {

/// Closes a descriptor on a thread in the background, because close(2) of what another process has
/// sent may wait: of a socket that lingers for its peer, of a file of FUSE for its server. Any
/// thread. If no thread can be started, the descriptor is closed by the next call that can start
/// one.
void dispose(sys::unique_fd descriptor) noexcept;

}  // namespace cohort::share
