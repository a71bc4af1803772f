// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"

// What workers do.
namespace chaos {

/// Whether busy workers print without end.
inline constexpr const char* flood_variable = "CHAOS_FLOODS";

void report_role(const char* role);
/// Starts a worker's extra process.
void start_extra_process(extra_process extra);
void behave(behaviour does);

}  // namespace chaos
