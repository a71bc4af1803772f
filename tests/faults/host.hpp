// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string_view>

namespace faults {

/// Starts two groups of the same kind, the first one watched by the test, and sends the test
/// the result of each.
/// @param what     "command", "spawn", "fork" or "forkserver"
/// @param is_warm  the process has run a group before
int host_main(std::string_view what, bool is_warm);

/// The result of a group as the host sends it, in fields that are separated by tabs:
///   ok
///   spawn_error  STAGE  INDEX  ERRNO  TEXT
///   failed       INDEX  TEXT            a worker failed
///   foreign      TEXT                   another exception
///   wrong        TEXT                   a false success
/// Sent after the faulted group. The host then waits, because its own calls must not fail.
inline constexpr std::string_view first_group_ended = "over";
inline constexpr int workers = 2;

}  // namespace faults
