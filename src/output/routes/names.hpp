// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "output/routes/routes.hpp"

#include <string>

namespace cohort::output {

/// What patterns name in this process: this host, and eight new random letters.
route_names names_for(std::string group);

/// The name of a run of options::logs().
std::string run_id_of(const detail::log_settings& logs, const route_names& names);

}  // namespace cohort::output
