// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string>
#include <system_error>

namespace cohort::base {

/// A size for people: "96 B", "4.0 KiB", "1.5 GiB".
std::string size_text(std::size_t bytes);

/// Throws a sharing_error whose text names the limit that was met, as far as the error says which,
/// and the ways out.
/// @param what  the thing that was not made: "shared array of 4.0 GiB"
[[noreturn]] void refuse(const std::string& what, std::error_code why);
/// Throws a sharing_error whose text is `what` and `reason`.
[[noreturn]] void refuse(const std::string& what, int error, const std::string& reason);

}  // namespace cohort::base
