// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/unique_fd.hpp"
#include "protocol/order/cpu_parts.hpp"
#include "protocol/order/environment.hpp"

#include <memory>

#include <sys/types.h>

namespace cohort::protocol {

/// The state that workers inherit from the thread that starts a group. Read in the initiating call,
/// because the start itself happens later and on another thread.
struct caller {
    pid_t pid = 0;
    protocol::environment environment;
    /// By O_PATH. Empty if it could not be opened; the directory of the process is used then.
    base::unique_fd directory;
    /// As long as this kernel's masks. Empty if it could not be read.
    cpu_mask affinity;
};

using caller_ref = std::shared_ptr<const caller>;

/// Captures the calling thread's environment, directory and affinity.
/// @throws spawn_error  no descriptor is left
caller_ref capture_caller(pid_t pid);

}  // namespace cohort::protocol
