// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <vector>

namespace cohort::multihost {

/// Divides things among hosts, in their order: the first hosts have one more where that is not
/// whole.
/// @return for each host how many
std::vector<int> divide(int things, std::size_t hosts);

}  // namespace cohort::multihost
