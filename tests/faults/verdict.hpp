// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

namespace faults {

/// What is wrong with how the faulted group went: all went well, or a typed error says what did not
/// and where. Empty: nothing is.
/// @param told   by the host
/// @param actor  whose call failed; only a worker that is itself hindered may end as a failed one
std::string wrong_with_first(const std::string& told, const std::string& actor);

}  // namespace faults
