// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"
#include "reports.hpp"

#include <cohort/outcome.hpp>

#include <string>
#include <vector>

namespace chaos {

/// Looks at all attempts of the workers of a group that has ended: each told once, in order and in
/// the history of its worker, never two of a worker at the same time, no more than are allowed, and
/// none that begins after the stop.
/// @param last  the last outcome of each worker
/// @return what is wrong; empty: nothing
std::string wrong_attempts(const group_plan& plan, const std::vector<cohort::outcome>& last,
                           const told_ends& told);

}  // namespace chaos
