// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/type_name.hpp>

#include "base/values/demangle.hpp"

std::string cohort::detail::type_name(const std::type_info& type) {
    return base::demangle(type.name());
}
