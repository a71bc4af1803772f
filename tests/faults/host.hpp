// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string_view>

namespace faults {

/// Starts two groups of the same kind, the first one under the judge's eyes, and tells it how each
/// went.
/// @param what     "command", "spawn", "fork" or "forkserver"
/// @param is_warm  there was a group before
int host_main(std::string_view what, bool is_warm);

/// How the host says how a group went: words that are separated by tabs.
///   ok
///   spawn_error  STAGE  INDEX  ERRNO  TEXT
///   failed       INDEX  TEXT            a worker did
///   foreign      TEXT                   another exception
///   wrong        TEXT                   a success that is none
/// After the faulted group, and then it waits: calls of its own are not to fail.
inline constexpr std::string_view is_over = "over";
inline constexpr int workers = 2;

}  // namespace faults
