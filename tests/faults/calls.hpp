// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string_view>
#include <vector>

namespace faults {

/// A system call that is made to fail, and the errors with which it fails.
struct call {
    std::string_view name;
    long number;
    std::vector<int> errors;  ///< the likely ones; without --long only the first is tried
};

/// All calls that are watched.
const std::vector<call>& calls();
/// @return null: the call is not watched
const call* find_call(long number);
const call* find_call(std::string_view name);

}  // namespace faults
