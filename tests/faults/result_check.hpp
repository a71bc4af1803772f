// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

namespace faults {

/// Checks the result of the faulted group: success, or a typed error that says what failed and
/// where.
/// @return what is wrong with it; empty: nothing
/// @param result  as the host sends it, see host.hpp
/// @param actor   the one whose call failed; only if it is a child may a worker have failed
std::string check_first_result(const std::string& result, const std::string& actor);

}  // namespace faults
