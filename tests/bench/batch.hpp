// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

namespace bench {

/// Commands that are run, some at a time.
struct batch_job {
    std::string program;
    int commands;
    int at_once;
};

/// A loop over Boost.Process: each end starts the next command.
void batch_by_boost(const batch_job& todo);

}  // namespace bench
