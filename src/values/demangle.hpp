// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <string_view>

namespace cohort::values {

/// The C++ spelling of `type_info::name()`: "std::runtime_error", "std::string". The name itself
/// when it is not one. Of a name of this program's own: a name that somebody made up for it can
/// become hundreds of megabytes of text.
std::string demangle(const char* name);
/// The same of a name from elsewhere. Only those of common types are demangled; any other is quoted
/// as it is, within 256 bytes.
std::string demangle_foreign(std::string_view name);

}  // namespace cohort::values
