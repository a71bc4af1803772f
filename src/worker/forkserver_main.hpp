// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "registry/mark.hpp"

namespace cohort::worker {

/// What the fork server does, in a process that was executed for it: runs the preloads, then forks
/// a worker for each request. Its workers are children of the application, not of itself. Ends with
/// the connection, of which `mark` names the descriptor.
[[noreturn]] void serve(const registry::mark& connection) noexcept;

}  // namespace cohort::worker
