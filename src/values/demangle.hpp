// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

namespace cohort::values {

/// The C++ spelling of `type_info::name()`: "std::runtime_error", "std::string". The name itself
/// when it is not one.
std::string demangle(const char* name);

}  // namespace cohort::values
