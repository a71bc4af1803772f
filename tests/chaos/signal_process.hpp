// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"
#include "process_tree.hpp"

#include <string>

#include <sys/types.h>

namespace chaos {

enum class target_kind { host, worker, any_process, fork_server, guardian };

/// The process that was signalled, and how.
struct sent_signals {
    pid_t pid = 0;          ///< 0: there was no process of that kind
    std::string text;       ///< for people
    bool is_fatal = false;  ///< it killed a worker that would not have ended by itself
};

/// Signals one process of the kind.
sent_signals signal_process(process_tree& tree, target_kind target, random_numbers& random);

}  // namespace chaos
