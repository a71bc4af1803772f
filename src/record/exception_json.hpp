// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/errors.hpp>

#include <exception>
#include <string_view>

namespace cohort::record {

/// What to_json has written, read back.
/// @param raised  makes the one to be thrown of a worker's own exception
/// @throws std::invalid_argument  why it is none
std::exception_ptr exception_in(std::string_view text,
                                std::exception_ptr (*raised)(const process_raised_exception&));

}  // namespace cohort::record
