// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <chrono>
#include <memory>

namespace cohort::base {

/// Closes a descriptor on a thread in the background, because close(2) of what another process has
/// sent may wait: of a socket that lingers for its peer, of a file of FUSE for its server. The last
/// close of large memory takes long, too. Removes its name in /dev/shm like own(). Any thread. If
/// no thread can be started, the descriptor is closed by the next call that can start one; if there
/// is no memory to keep it, never.
void dispose(base::unique_fd descriptor) noexcept;

/// Lets go of an object on that thread, because freeing what a worker has filled may take long.
void dispose(std::shared_ptr<const void> object) noexcept;

/// Closes what another process has sent, as dispose() does. May wait: for objects that dispose()
/// lets go of.
void close_received(base::unique_fd descriptor) noexcept;

/// Waits until all that was given to dispose() is closed or freed, at most for `longest`. Returns
/// at once if this thread has given nothing since its last call.
void await_disposed(std::chrono::milliseconds longest) noexcept;

}  // namespace cohort::base
