// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "peer.hpp"

#include <sys/types.h>

namespace bench {

/// A child without any bookkeeping. pidfd is -1 if the call that made the child gives none.
struct raw_child {
    pid_t pid = -1;
    int pidfd = -1;
};

/// @throws std::system_error  no child was made
using raw_start = raw_child (*)(char* const* argv);
raw_child start_by_posix_spawn(char* const* argv);
raw_child start_by_clone(char* const* argv);

/// Waits for the child's end and closes its pidfd.
void reap(raw_child child);

/// Runs a job with nothing but `start` and waitid. Without a ticker it blocks in both, as a plain
/// program does. With a ticker it starts from a handler of an Asio loop, which then waits for
/// pidfds, so that only the start itself blocks the loop.
std::vector<duration> run_raw(const job&, raw_start start);

}  // namespace bench
