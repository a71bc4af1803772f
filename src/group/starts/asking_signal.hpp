// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>

namespace cohort::groups {

/// The signal by which a worker function is asked for its stacks. It is the highest signal that has
/// no other meaning for the worker, because that is the one that programs use least.
int asking_signal(const detail::group_settings& settings) noexcept;

}  // namespace cohort::groups
