// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "worker/mark.hpp"

namespace cohort::start {

/// What the fork server does, in a process that was executed for it: runs the preloads, then forks
/// a worker for each request. Its workers are children of the application, not of itself. Ends with
/// the connection, of which `mark` names the descriptor.
[[noreturn]] void serve(const worker::mark& connection) noexcept;

}  // namespace cohort::start
