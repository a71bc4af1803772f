// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/duration.hpp>
#include <cohort/detail/placement.hpp>
#include <cohort/detail/plan.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace cohort::detail::inline v0_1 {

/// The user's callable that makes the command that reaches a host.
/// @param agent  the words that start the agent there: a program, then its arguments
using make_launch =
    std::function<program(const std::string& host, const std::vector<std::string>& agent)>;

/// The data behind a launcher of the user's own.
struct own_launch {
    std::vector<std::string> hosts;
    std::shared_ptr<const make_launch> make;

    friend bool operator==(const own_launch&, const own_launch&) = default;
};

/// The data behind `ssh()`.
struct ssh_launch {
    std::vector<std::string> hosts;
    std::vector<std::string> arguments;

    friend bool operator==(const ssh_launch&, const ssh_launch&) = default;
};

/// The data behind `slurm()`.
struct slurm_launch {
    int nodes = 0;  // the first ones of the allocation; 0: all
    std::vector<std::string> arguments;

    friend bool operator==(const slurm_launch&, const slurm_launch&) = default;
};

/// The data behind `launcher`.
struct launch_settings {
    using way = std::variant<own_launch, ssh_launch, slurm_launch>;

    way by;
    std::string program_path;  // empty: this program's own
    steady_duration reach_within = std::chrono::seconds(60);
    steady_duration host_timeout = std::chrono::seconds(10);
    std::vector<env_change> env;    // of the agents
    std::string working_directory;  // of the agents; empty: the caller's, where a host has it
    int port = 29500;

    friend bool operator==(const launch_settings&, const launch_settings&) = default;
};

}  // namespace cohort::detail::inline v0_1
