// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/error_node.hpp>
#include <cohort/error_record.hpp>

#include <chrono>
#include <exception>
#include <string>
#include <string_view>

namespace cohort::protocol {

/// The registered or standard type with this demangled name; null when there is none.
const detail::error_node* find_error_type(std::string_view name);
/// The standard types, as a linked list.
const detail::error_node* standard_error_types() noexcept;

/// The worker's exception in its own type, with the exceptions nested in it. Null when the type, or
/// something that it needs, is not known here. Runs the code that was registered for the type.
std::exception_ptr restored(const error_record& error) noexcept;

/// The exception that is being handled, with its stack, code and causes. Call it in a catch block.
/// noexcept: what does not fit into memory is shortened or left out.
error_record describe_current_exception() noexcept;

/// When the exception, or the first of those nested in it, was thrown. Now if that was not noted,
/// and for null.
std::chrono::steady_clock::time_point time_of(const std::exception_ptr& exception) noexcept;

/// The type's name of the exception that is being handled, without the wrapper that
/// std::throw_with_nested adds.
std::string name_of_current_exception();

}  // namespace cohort::protocol
