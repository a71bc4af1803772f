// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "family.hpp"
#include "plan.hpp"

#include <string>

#include <sys/types.h>

namespace chaos {

enum class victim { host, worker, anybody, server, guardian };

/// What was done to whom.
struct blow {
    pid_t pid = 0;          ///< 0: there was nobody of that kind
    std::string text;       ///< for a person
    bool is_fatal = false;  ///< a worker of a group has died of it that would not have ended
};

/// Kills one of the kind.
blow strike(family& tree, victim who, dice& thrown);

}  // namespace chaos
