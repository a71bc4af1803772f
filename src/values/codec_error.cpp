// SPDX-License-Identifier: BSL-1.0
#include "values/demangle.hpp"

#include <cohort/detail/codec_error.hpp>

namespace cohort {

codec_error::~codec_error() = default;

std::string detail::type_name(const std::type_info& type) { return values::demangle(type.name()); }

}  // namespace cohort
