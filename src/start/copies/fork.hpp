// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "start/copies/copy.hpp"
#include "start/copies/copy_reports.hpp"

#include <atomic>
#include <functional>

namespace cohort::start {

/// Makes a copy of this process that runs `body`, which must not return, on a copy of the calling
/// thread. Uses fork(3) and not a bare clone, because fork(3) makes the C library's locks usable in
/// the copy, above all the allocator's. Otherwise like start_by_exec(): for starter threads.
start::exec_result start_by_fork(protocol::order_block& order, copy_reports& reports,
                                 const std::function<void()>& body, std::atomic<int>& pidfd_slot);

}  // namespace cohort::start
