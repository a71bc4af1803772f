// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"

#include <cohort/options.hpp>

namespace chaos {

/// The options that a plan asks for.
cohort::options options_of(const group_plan& plan);

}  // namespace chaos
