// SPDX-License-Identifier: BSL-1.0
// The plan by which hosts are reached.
#include "hosts/launchers/launch_plan.hpp"

#include "base/text/text.hpp"
#include "hosts/launchers/slurm.hpp"
#include "hosts/launchers/ssh.hpp"
#include "hosts/launchers/surroundings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace cohort::multihost {
namespace {

constexpr std::size_t longest_output = std::size_t{1} << 20;
constexpr std::string_view refused_for_gpus = "Invalid generic resource (gres) specification";
constexpr std::string_view help_with_gpus =
    ", because the step does not say how many of the job's GPUs it needs: add "
    ".arguments(\"--gres=gpu:N\") to slurm(), where every node has at least N of them, or "
    ".arguments(\"--gres=none\")";

/// A path that is relative to the caller's directory, as an absolute one.
std::string absolute(const std::string& path, const std::string& directory) {
    return path.starts_with('/') || directory.empty() ? path : directory + '/' + path;
}

std::string program_path(const detail::launch_settings& settings, const surroundings& here) {
    const auto& path = settings.program_path;
    if (path.empty())
        return here.program;
    return path.find('/') == path.npos ? path : absolute(path, here.directory);
}

void require_free_streams(const std::string& host, const detail::program& command) {
    const auto& where = command.where;
    const auto is_given = [&](int number) { return where.descriptors.contains(number); };
    if (where.input || !where.sinks.empty() || is_given(0) || is_given(1) || is_given(2))
        throw std::invalid_argument(fmt::format(
            "cohort: launcher: the command for {} has other uses for its standard streams, which "
            "are the link to the agent",
            host));
}

void add_commands(launch_plan& plan, const detail::own_launch& how) {
    if (how.hosts.empty())
        throw std::invalid_argument("cohort: launcher: there is no host: name them by hosts()");
    for (const auto& host : how.hosts) {
        plan.commands.push_back((*how.make)(host, plan.agent));
        require_free_streams(host, plan.commands.back());
    }
    plan.hosts = how.hosts;
}

void add_commands(launch_plan& plan, const detail::ssh_launch& how) {
    for (const auto& host : how.hosts)
        plan.commands.push_back(ssh_command(how, host, plan.agent));
    plan.hosts = how.hosts;
    plan.at_once = ssh_at_once;
}

}  // namespace

launch_plan make_launch_plan(const detail::launch_settings& settings,
                             const std::vector<std::string>& agent_words,
                             const surroundings& here) {
    launch_plan plan;
    plan.agent.push_back(program_path(settings, here));
    plan.agent.insert(plan.agent.end(), agent_words.begin(), agent_words.end());
    plan.reach_within = settings.reach_within;
    plan.host_timeout = settings.host_timeout;
    plan.env = settings.env;
    plan.working_directory_is_set = !settings.working_directory.empty();
    plan.working_directory = plan.working_directory_is_set
                                 ? absolute(settings.working_directory, here.directory)
                                 : here.directory;
    plan.port = settings.port;
    if (const auto* own = std::get_if<detail::own_launch>(&settings.by))
        add_commands(plan, *own);
    else if (const auto* ssh = std::get_if<detail::ssh_launch>(&settings.by))
        add_commands(plan, *ssh);
    else {
        const auto& slurm = std::get<detail::slurm_launch>(settings.by);
        plan.job = slurm_job_of(slurm, here.environment, plan.agent.front());
        plan.names_command = slurm_names_command(*plan.job, here.environment);
    }
    return plan;
}

launch_plan plan_of(const detail::launch_settings& settings,
                    const std::vector<std::string>& agent_words) {
    return make_launch_plan(settings, agent_words, read_surroundings(settings));
}

void take_names(launch_plan& plan, std::string_view printed) {
    if (printed.size() > longest_output)
        throw std::runtime_error("scontrol's output is longer than 1 MiB");
    auto names = slurm_names(printed);
    const auto& job = plan.job.value();
    if (static_cast<std::size_t>(job.nodes) > names.size())
        throw std::invalid_argument(
            fmt::format("cohort: nodes: {}, but the allocation has {}", job.nodes, names.size()));
    if (job.nodes > 0)
        names.resize(static_cast<std::size_t>(job.nodes));
    std::vector<detail::program> commands;
    for (const auto& name : names)
        commands.push_back(srun_command(job, name, plan.agent));
    plan.hosts = std::move(names);
    plan.commands = std::move(commands);
}

std::string_view help_with(const launch_plan& plan, std::string_view printed) noexcept {
    if (plan.job && !plan.job->user_asks_for_gpus && base::contains(printed, refused_for_gpus))
        return help_with_gpus;
    return {};
}

}  // namespace cohort::multihost
