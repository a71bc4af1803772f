// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string_view>

namespace faults {

/// Starts two groups of the same kind, the first one under the judge's eyes, and tells the judge
/// the result of each.
/// @param what     "command", "spawn", "fork" or "forkserver"
/// @param is_warm  the process has run a group before
int host_main(std::string_view what, bool is_warm);

/// The host's words for the result of a group, separated by tabs:
///   ok
///   spawn_error  STAGE  INDEX  ERRNO  TEXT
///   failed       INDEX  TEXT            a worker failed
///   foreign      TEXT                   another exception
///   wrong        TEXT                   a false success
/// Sent after the faulted group. The host then waits, because its own calls must not fail.
inline constexpr std::string_view is_over = "over";
inline constexpr int workers = 2;

}  // namespace faults
