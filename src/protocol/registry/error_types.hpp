// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/error_node.hpp>

#include <exception>
#include <string_view>

namespace cohort::protocol {

/// The registered or standard type with this demangled name; null when there is none.
const detail::error_node* find_error_type(std::string_view name);
/// The standard types, as a linked list.
const detail::error_node* standard_error_types() noexcept;

/// The worker's exception in its own type, with the exceptions nested in it. Null when the type, or
/// something that it needs, is not known here. Runs the code that was registered for the type.
std::exception_ptr restored(const error_record& error) noexcept;

}  // namespace cohort::protocol
