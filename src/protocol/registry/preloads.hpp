// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/registry/registry.hpp"

#include <vector>

namespace cohort::protocol {

/// The functions that forkserver_preload has named so far, each once, in order.
std::vector<protocol::function_key> preloads();

}  // namespace cohort::protocol
