// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "family.hpp"
#include "plan.hpp"

#include <string>

#include <sys/types.h>

namespace chaos {

enum class victim { host, worker, anybody, server, guardian };

/// The process that was signalled, and how.
struct blow {
    pid_t pid = 0;          ///< 0: there was no process of that kind
    std::string text;       ///< for people
    bool is_fatal = false;  ///< it killed a worker that would not have ended by itself
};

/// Signals one process of the kind.
blow strike(family& tree, victim who, dice& thrown);

}  // namespace chaos
