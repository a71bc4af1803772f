// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/registry/mark.hpp"

namespace cohort::worker {

/// Runs the fork server, in a process that was executed for it: calls the preloads, then forks a
/// worker for each request. The workers are children of the application, not of the server. Ends
/// when the connection is closed.
/// @param connection  names the connection's descriptor
[[noreturn]] void serve(const protocol::mark& connection) noexcept;

}  // namespace cohort::worker
