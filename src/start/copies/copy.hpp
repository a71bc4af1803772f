// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "start/exec/exec.hpp"

#include <functional>

namespace cohort::start {

// Workers that are forked copies of a process, the application or the fork server. After their
// birth they take the same steps as the child of a start by exec, but share no memory with the
// process that waits for them.

/// Gives every signal its default action. The C library's own two keep their handlers, because it
/// refuses to change them. Called in the copy, or in the process that is to be copied.
void reset_dispositions() noexcept;

/// The child's side, in a process without signal handlers: takes the steps, reports, and runs
/// `body`, which must not return. If a step fails it reports that and exits. Does not use argv,
/// candidates and pid_fields of the order. Enters the order's cgroup.
[[noreturn]] void run_copy(protocol::order_block& order, start::start_tier tier,
                           const std::function<void()>& body);

}  // namespace cohort::start
