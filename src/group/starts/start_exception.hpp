// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>

namespace cohort::groups {

/// What the exception that is being handled means for the start of worker `index`.
/// @throws std::bad_alloc
detail::start_failure failure_of_exception(int index);

}  // namespace cohort::groups
