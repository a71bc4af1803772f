// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "output/routes/routes.hpp"

#include <string>

namespace cohort::output {

/// What patterns name in this process: this host, and eight new random letters.
route_names names_for(std::string group);

}  // namespace cohort::output
