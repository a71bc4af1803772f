// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <string>
#include <typeinfo>

namespace cohort::detail::inline v0_1 {

/// The name of a C++ type in readable form: "std::vector<int>".
COHORT_API std::string type_name(const std::type_info& type);

}  // namespace cohort::detail::inline v0_1
