// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/launch_settings.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::multihost {

/// What is known of a Slurm job before the names of its nodes are.
struct slurm_job {
    std::string id;
    int nodes = 0;                          // how many are wanted; 0: all
    std::vector<std::string> arguments;     // the user's, for srun
    std::vector<detail::env_change> scrub;  // what srun and scontrol may not see of the environment
    bool user_asks_for_gpus = false;        // by `arguments`

    friend bool operator==(const slurm_job&, const slurm_job&) = default;
};

/// How hosts are reached, as data: nothing has been started.
struct launch_plan {
    std::vector<std::string> hosts;
    std::vector<detail::program>
        commands;                    // one a host, in their order; stdin and stdout are the link
    std::size_t at_once = 0;         // how many may be on their way to a hello; 0: all
    std::vector<std::string> agent;  // what each command starts at its host

    /// With Slurm `hosts` and `commands` are empty until this command has run: its output goes to
    /// take_names().
    std::optional<detail::program> names_command;
    std::optional<slurm_job> job;

    detail::steady_duration reach_within{0};
    detail::steady_duration host_timeout{0};
    std::vector<detail::env_change> env;    // of the agents, not of the commands
    std::string working_directory;          // of the agents; empty: it is not known
    bool working_directory_is_set = false;  // by the user: an agent may not do without it
    int port = 0;

    friend bool operator==(const launch_plan&, const launch_plan&) = default;
};

/// The plan of a launcher, made on the caller's thread, because it calls the user's callable. Reads
/// the environment, the working directory, and the path of this program where none is set.
/// @param agent_words  what the program gets as its arguments at the hosts: the agent's mark
/// @throws std::invalid_argument  `launcher` has no hosts; the last of ssh's arguments has no
///         value; the callable's command has other uses for its standard streams
/// @throws std::logic_error   slurm(), and this program is in no allocation: with the salloc line
/// @throws std::system_error  this program's path can't be read (readlink), or leads nowhere
///         because the file has been replaced (ENOENT)
/// @throws whatever the user's callable throws
launch_plan plan_of(const detail::launch_settings& settings,
                    const std::vector<std::string>& agent_words);

/// Adds hosts and commands to a plan, from what names_command has printed.
/// @throws std::invalid_argument  the allocation has fewer nodes than were asked for
/// @throws std::runtime_error     this is no list of names, one a line: what is wrong with it
void take_names(launch_plan& plan, std::string_view printed);

/// What the user can do about a launcher that has failed, to stand behind the text that says so.
/// Known is one case: in a job that was made with --gpus=N, Slurm 22.05 refuses each step that does
/// not say how many GPUs it needs.
/// @param printed  the launcher's stderr
/// @return empty: nothing is known, or the user has said which GPUs he wants
std::string_view help_with(const launch_plan& plan, std::string_view printed) noexcept;

}  // namespace cohort::multihost
