// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>

namespace cohort::base {

/// A count as people write it: "1,234,567".
std::string with_separators(std::uint64_t count);

}  // namespace cohort::base
