// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/launchers/launch_plan.hpp"

#include <string>
#include <vector>

namespace cohort::multihost {

/// What a plan of launches takes from this process.
struct surroundings {
    std::string program;                   // its path; empty: nobody asked
    std::string directory;                 // empty: it has no path here
    std::vector<std::string> environment;  // entries "NAME=value"
};

/// @throws std::system_error  the program's path is needed, and can't be had
surroundings read_surroundings(const detail::launch_settings& settings);

/// The path of a program whose /proc/pid/exe leads to this text.
/// @throws std::system_error  ENOENT: its file has been removed or replaced, so that hosts could
///         not start it
std::string program_at(const std::string& link);

/// The plan, made in these surroundings. See plan_of.
launch_plan make_launch_plan(const detail::launch_settings& settings,
                             const std::vector<std::string>& agent_words, const surroundings& here);

}  // namespace cohort::multihost
