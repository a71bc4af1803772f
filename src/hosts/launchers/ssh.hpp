// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/launch_settings.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace cohort::multihost {

/// sshd drops some of more than 10 connections that are not authenticated yet (MaxStartups).
inline constexpr std::size_t ssh_at_once = 8;

/// Checks options that the user adds for ssh. The last may lack its value.
/// @throws std::invalid_argument  one disconnects the link, or is no option
void require_ssh_options(const std::vector<std::string>& words);

/// The command that starts the agent on a host. Ssh joins the agent's words and gives them to the
/// remote shell, so they are quoted.
/// @throws std::invalid_argument  the last of the user's options lacks its value
detail::program ssh_command(const detail::ssh_launch& how, const std::string& host,
                            const std::vector<std::string>& agent);

}  // namespace cohort::multihost
