// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/errors.hpp>

#include <exception>
#include <string_view>

namespace cohort::protocol {

/// Reads back what to_json has written.
/// @param raised  makes the exception to be thrown from a process_raised_exception
/// @throws std::invalid_argument  `text` is no such exception; what() says why
std::exception_ptr exception_in(std::string_view text,
                                std::exception_ptr (*raised)(const process_raised_exception&));

}  // namespace cohort::protocol
