// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "exec/exec.hpp"

#include <functional>

namespace cohort::copies {

// Workers that are forked copies of a process, whichever: after the birth they go through the same
// steps as the child of a start by exec, but have no memory in common with who waits for them.

/// Gives every signal its default action; the C library's own two keep their handlers: it refuses
/// to change them. For the copy, or for the process that is to be copied.
void reset_dispositions() noexcept;

/// The child's side, in a process without handlers: goes through the steps, tells, and runs `body`,
/// which must not return. Where a step fails it tells that and leaves. argv, candidates and
/// pid_fields of the order have no use; its cgroup is one to enter.
[[noreturn]] void run_copy(orders::order_block& order, exec::start_tier tier,
                           const std::function<void()>& body);

/// The other side: blocks until the child of `result` has told or is gone.
/// @param record, started_event  this process' own
void await_copy(exec::exec_result& result, int record, int started_event) noexcept;

}  // namespace cohort::copies
