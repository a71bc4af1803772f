// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

namespace cohort::base {

/// Whether a file in /dev/shm can have this name. A name with a '/', or "..", would leave that
/// directory.
bool is_name(const std::string& name) noexcept;
/// @throws std::invalid_argument  it is none
void check_name(const std::string& name);

}  // namespace cohort::base
