// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "trace/names.hpp"

#include <cohort/outcome.hpp>

namespace cohort::group_room {

/// It has frames without names.
bool needs_names(const outcome& worker) noexcept;
/// Names what frames it has. What fails for want of memory stays unnamed.
void name_frames(outcome& worker, trace::names& names) noexcept;
/// Writes the texts of what is known of its end, with whatever names there are.
void write_traces(outcome& worker);

}  // namespace cohort::group_room
