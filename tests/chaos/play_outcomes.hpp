// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "play.hpp"

#include <cohort/outcome.hpp>

#include <exception>
#include <string>
#include <vector>

namespace chaos {

/// Looks at the outcomes of a play's workers, of all their attempts: whether each could end so,
/// whether the right one is the first failure, and whether no more of them ran at once than may.
/// @param last         the last outcome of each worker
/// @param was_stopped  by the application
/// @return what is wrong; empty: nothing
std::string wrong_outcomes(const play& plan, const std::vector<cohort::outcome>& last,
                           bool was_stopped);

/// Looks at what a call has thrown that waits for the end of the group.
/// @param was_stopped  by the application
/// @return what is wrong; empty: nothing
std::string wrong_failure(const play& plan, std::exception_ptr thrown, bool was_stopped);

}  // namespace chaos
