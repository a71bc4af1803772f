// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

namespace cohort::multihost {

/// From now on the signals that would end this process by default (SIGTERM, SIGINT, SIGHUP) do not:
/// each puts its number into a pipe, one byte. A handler does that, because a signalfd would miss
/// those that a thread takes which was there before. What this process starts has the default
/// actions. To be called once.
/// @return the reading end, non-blocking
/// @throws std::system_error  no pipe could be made
base::unique_fd catch_end_signals();

}  // namespace cohort::multihost
