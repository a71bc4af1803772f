// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <string_view>

namespace cohort::base {

/// The C++ spelling of `type_info::name()`: "std::runtime_error", "std::string". `name` itself when
/// it is no mangled name. Only for names of this program, because a name that somebody made up can
/// become hundreds of megabytes of text.
std::string demangle(const char* name);
/// demangle() for a name from elsewhere: only the names of common types are demangled, any other
/// name is quoted as it is, within 256 bytes.
std::string demangle_foreign(std::string_view name);

}  // namespace cohort::base
