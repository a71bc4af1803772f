// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "exec/exec.hpp"

#include <functional>

namespace cohort::copies {

// Workers that are forked copies of a process, whichever: after the birth they go through the same
// steps as the child of a start by exec, but have no memory in common with who waits for them.

/// How such a child tells what became of its start: it notes it in its record, then signals the event,
/// an eventfd of the whole group. Both stand among the order's descriptors; these are their numbers
/// in the child.
struct copy_channel {
    int record;
    int started_event;
};

/// Gives every signal its default action; the C library's own two keep their handlers: it refuses
/// to change them. For the copy, or for the process that is to be copied.
void reset_dispositions() noexcept;

/// The child's side, in a process without handlers: goes through the steps, tells, and runs `body`,
/// which must not return. Where a step fails it tells that and leaves. argv, candidates and
/// pid_fields of the order have no use; its cgroup is one to enter.
[[noreturn]] void run_copy(const exec::exec_order& order, copy_channel channel,
                           exec::start_tier tier, const std::function<void()>& body);

/// The other side: blocks until the child of `result` has told or is gone.
/// @param record, started_event  this process' own
void await_copy(exec::exec_result& result, int record, int started_event) noexcept;

}  // namespace cohort::copies
