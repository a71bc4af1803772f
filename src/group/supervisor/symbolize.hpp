// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/trace/names.hpp"

#include <cohort/outcome.hpp>

#include <memory>

namespace cohort::groups {

/// Whether the outcome has frames without names, or frames or causes that belong in its text.
bool needs_symbols(const outcome& worker) noexcept;
/// A copy of the outcome with names for its frames, and with the texts of its error and its crash.
/// If there is no memory for that, the outcome as it is.
/// @param names  null: no name is looked up; the texts show the names that are there
std::shared_ptr<const outcome> symbolized(const std::shared_ptr<const outcome>& worker,
                                          protocol::names* names) noexcept;

}  // namespace cohort::groups
