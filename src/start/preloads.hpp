// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "worker/registry.hpp"

#include <vector>

namespace cohort::start {

/// The functions that forkserver_preload has named so far, each once, in order.
std::vector<worker::function_key> preloads();

}  // namespace cohort::start
