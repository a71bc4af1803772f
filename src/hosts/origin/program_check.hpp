// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/values/messages.hpp"

#include <optional>
#include <string>
#include <system_error>

namespace cohort::multihost {

/// Why an agent can't serve this program.
struct misfit {
    const char* stage;  // of reach_error
    std::error_code code;
    std::string text;
};

/// Whether both are the same build of the same program.
/// @param said  by the agent
/// @param own   what an agent of this program says
std::optional<misfit> find_misfit(const read_value<hello>& said, const hello& own);

}  // namespace cohort::multihost
