// SPDX-License-Identifier: BSL-1.0
// The setters of launchers: what they refuse.
#include "hosts/launchers/slurm.hpp"
#include "hosts/launchers/ssh.hpp"

#include <cohort/detail/launch_plan.hpp>

#include <fmt/format.h>

#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

namespace cohort::detail::inline v0_1 {

namespace {

void require_hosts(const char* setter, const std::vector<std::string>& names) {
    if (names.empty())
        throw std::invalid_argument(fmt::format("cohort: {}: there is no host", setter));
    std::set<std::string_view> seen;
    for (const auto& name : names) {
        if (name.empty())
            throw std::invalid_argument(
                fmt::format("cohort: {}: the name of a host is empty", setter));
        require_no_nul(name, "the name of a host");
        if (name.find('\n') != name.npos)
            throw std::invalid_argument(fmt::format(
                "cohort: {}: the name of a host, \"{}\", has a newline in it", setter, name));
        if (!seen.insert(name).second)
            throw std::invalid_argument(
                fmt::format("cohort: {}: the host \"{}\" is named twice", setter, name));
    }
}

}  // namespace

void launch_settings::set_own(make_launch make) {
    by = own_launch{{}, std::make_shared<const make_launch>(std::move(make))};
}

void launch_settings::set_hosts(std::vector<std::string> names) {
    require_hosts("hosts", names);
    std::get<own_launch>(by).hosts = std::move(names);
}

void launch_settings::set_ssh(std::vector<std::string> names) {
    require_hosts("ssh", names);
    for (const auto& name : names)
        if (name.starts_with('-'))
            throw std::invalid_argument(fmt::format(
                "cohort: ssh: the name of a host, \"{}\", begins with '-': ssh takes it for an "
                "option",
                name));
    by = ssh_launch{std::move(names), {}};
}

void launch_settings::set_nodes(int n) {
    if (n < 1)
        throw std::invalid_argument(fmt::format("cohort: nodes: less than 1 ({})", n));
    std::get<slurm_launch>(by).nodes = n;
}

void launch_settings::add_arguments(std::vector<std::string> words) {
    auto* const ssh = std::get_if<ssh_launch>(&by);
    auto& kept = ssh != nullptr ? ssh->arguments : std::get<slurm_launch>(by).arguments;
    auto all = kept;
    for (auto& word : words) {
        require_no_nul(word, "an argument of a launcher");
        all.push_back(std::move(word));
    }
    ssh != nullptr ? multihost::require_ssh_options(all) : multihost::require_srun_options(all);
    kept = std::move(all);
}

void launch_settings::set_program(std::string path) {
    require_path("program", path);
    if (path.starts_with('-'))
        throw std::invalid_argument(fmt::format(
            "cohort: program: \"{}\" begins with '-': ssh and srun take it for an option", path));
    program_path = std::move(path);
}

void launch_settings::set_reach_within(steady_duration d) {
    if (d <= steady_duration::zero())
        throw std::invalid_argument("cohort: reach_within: the duration is not above 0");
    reach_within = d;
}

void launch_settings::set_host_timeout(steady_duration d) {
    if (d < std::chrono::seconds(2))
        throw std::invalid_argument(
            "cohort: host_timeout: less than 2 s, but each end sends a beat only each second");
    host_timeout = d;
}

void launch_settings::set_variable(std::string name, std::string value) {
    placement checked;
    checked.set_variable(std::move(name), std::move(value));
    env.push_back(std::move(checked.env.front()));
}

void launch_settings::set_working_directory(std::string path) {
    require_path("working_directory", path);
    working_directory = std::move(path);
}

void launch_settings::set_port(std::int64_t n) {
    if (n < 1 || n > 65535)
        throw std::invalid_argument("cohort: port: not from 1 to 65535");
    port = static_cast<int>(n);
}

}  // namespace cohort::detail::inline v0_1
