// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/registry/registry.hpp"

#include <vector>

namespace cohort::registry {

/// The functions that forkserver_preload has named so far, each once, in order.
std::vector<record::function_key> preloads();

}  // namespace cohort::registry
