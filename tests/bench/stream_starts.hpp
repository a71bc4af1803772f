// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "peer.hpp"

#include <string>
#include <vector>

namespace bench {

/// Starts `program` `count` times, one at a time, with a pipe for each of its two streams, which is
/// read to the end. @return how long each took
std::vector<duration> start_by_boost(const std::string& program, int count);

}  // namespace bench
