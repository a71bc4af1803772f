// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string_view>
#include <vector>

namespace faults {

/// A system call that is made to fail, and with what.
struct call {
    std::string_view name;
    long number;
    std::vector<int> errors;  ///< those that are likely; the first one is tried without --long
};

/// All that are watched.
const std::vector<call>& calls();
/// Null: it is not watched.
const call* find_call(long number);
const call* find_call(std::string_view name);

}  // namespace faults
