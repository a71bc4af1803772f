// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <fcntl.h>

namespace cohort::sys {

// Files of /proc and of cgroups. A standard stream would do but for one thing: what another thread
// of the host executes meanwhile would get its descriptor.

/// The beginning of a file, as much as `room` takes; empty when it can't be read.
[[nodiscard]] std::string_view read_start(const char* path, std::span<char> room,
                                          int directory = AT_FDCWD) noexcept;

/// The whole of it; empty when it can't be read.
[[nodiscard]] std::string read_text(const std::string& path);

}  // namespace cohort::sys
