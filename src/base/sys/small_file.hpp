// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <fcntl.h>

namespace cohort::base {

// Reads files of /proc and of cgroups. Not with a standard stream, because that is not
// close-on-exec: a program that another thread executes meanwhile would inherit the descriptor.

/// The beginning of a file, as much as `room` takes; empty when it can't be read.
[[nodiscard]] std::string_view read_start(const char* path, std::span<char> room,
                                          int directory = AT_FDCWD) noexcept;

/// One entry of a file whose entries end with a NUL each; `index` 0 is the first. Empty when it is
/// missing or does not fit into `room`. The entries before it may have any length.
[[nodiscard]] std::string_view read_entry(const char* path, int index,
                                          std::span<char> room) noexcept;

/// The whole file; empty when it can't be read.
[[nodiscard]] std::string read_text(const std::string& path, int directory = AT_FDCWD);

}  // namespace cohort::base
