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

/// One of a file's texts, each of which ends with a NUL; `index` 0 is the first. Empty when it is not
/// there or does not fit into `room`, however long the texts before it are.
[[nodiscard]] std::string_view read_entry(const char* path, int index,
                                          std::span<char> room) noexcept;

/// The whole of it; empty when it can't be read.
[[nodiscard]] std::string read_text(const std::string& path, int directory = AT_FDCWD);

}  // namespace cohort::sys
