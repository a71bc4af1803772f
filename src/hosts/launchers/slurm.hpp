// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/launchers/launch_plan.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::multihost {

/// Checks options that the user adds for srun.
/// @throws std::invalid_argument  one breaks the link, or says how many agents start and where
void require_srun_options(const std::vector<std::string>& words);

/// What srun must not see of an environment, because it takes variables for options: all of Slurm's
/// but those that say where the cluster is and who asks. An agent takes these out of its own
/// environment as well, because its workers may start steps of their own.
/// @param environment  entries "NAME=value"
/// @return changes that unset, each name once
std::vector<detail::env_change> slurm_scrub(std::span<const std::string> environment);

/// The job in which a program with this environment runs.
/// @param program  the path of this program, for the message
/// @throws std::logic_error  there is none: with the salloc line that is right
slurm_job slurm_job_of(const detail::slurm_launch& how, std::span<const std::string> environment,
                       const std::string& program);

/// The command that prints the names of the job's nodes, one a line.
detail::program slurm_names_command(const slurm_job& job, std::span<const std::string> environment);
/// The names in its output, within limits.
/// @throws std::runtime_error  it is no list of names
std::vector<std::string> slurm_names(std::string_view printed);

/// The command that starts the agent on a node, as a step of the job.
detail::program srun_command(const slurm_job& job, const std::string& node,
                             const std::vector<std::string>& agent);

}  // namespace cohort::multihost
