// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "copies/copy.hpp"

#include <atomic>
#include <functional>

namespace cohort::copies {

/// Makes a copy of this process that runs `body`, which must not return, on a copy of the calling
/// thread. By fork(3) and not by a bare clone: the C library makes its locks, its allocator's above
/// all, usable in the copy. As start_by_exec in all else: call it from a starter thread.
/// @param record, started_event  this process' own ends of the channel
exec::exec_result start_by_fork(orders::order_block& order, int record, int started_event,
                                const std::function<void()>& body, std::atomic<int>& pidfd_slot);

}  // namespace cohort::copies
