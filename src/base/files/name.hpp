// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>

namespace cohort::base {

/// 64 random bits, by which processes recognise a thing that they share. No other process can guess
/// them.
/// @throws std::system_error
[[nodiscard]] std::uint64_t random_number();

/// Whether a file in /dev/shm can have this name. A name with a '/', or "..", would leave that
/// directory.
bool is_name(const std::string& name) noexcept;
/// @throws std::invalid_argument  it is none
void check_name(const std::string& name);

}  // namespace cohort::base
