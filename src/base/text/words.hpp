// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <vector>

namespace cohort::base {

/// The words of a command as one line for people, as a shell would take it: `sh -c 'exit 3'`. At
/// most 4 KiB of them; " ..." stands for the rest.
std::string command_line(const std::vector<std::string>& words);
/// All of the words as one line, of which any shell makes the same words.
/// @param words  without NULs
std::string shell_line(const std::vector<std::string>& words);

}  // namespace cohort::base
