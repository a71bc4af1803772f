// SPDX-License-Identifier: BSL-1.0
#include "protocol/registry/agent_mark.hpp"

#include <sys/auxv.h>
#include <unistd.h>

namespace cohort::protocol {

bool may_be_agent() noexcept {
    return ::getauxval(AT_SECURE) == 0 && ::isatty(STDIN_FILENO) == 0 &&
           ::isatty(STDOUT_FILENO) == 0;
}

}  // namespace cohort::protocol
