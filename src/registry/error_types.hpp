// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/error_node.hpp>

#include <exception>
#include <string_view>

namespace cohort::registry {

/// The taught or standard type with this name, demangled; null when there is none.
const detail::error_node* find_error_type(std::string_view name);
/// The standard ones, as a list.
const detail::error_node* standard_error_types() noexcept;

/// The worker's exception as its own type, with what was nested in it; null when its type, or what
/// a taught one needs, is not known here. Runs code of whoever taught the type.
std::exception_ptr restored(const error_record& error) noexcept;

}  // namespace cohort::registry
