// SPDX-License-Identifier: BSL-1.0
// The setters of launchers: what they refuse.
#include "base/text/text.hpp"
#include "hosts/launchers/slurm.hpp"
#include "hosts/launchers/ssh.hpp"

#include <cohort/launchers.hpp>

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace cohort {

using detail::require_no_nul;
using detail::require_path;

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

void require_hosts_for_ssh(const char* setter, const std::vector<std::string>& names) {
    require_hosts(setter, names);
    for (const auto& name : names)
        if (name.starts_with('-'))
            throw std::invalid_argument(fmt::format(
                "cohort: {}: the name of a host, \"{}\", begins with '-': ssh takes it for an "
                "option",
                setter, name));
}

}  // namespace

launcher& launcher::set_hosts(std::vector<std::string> names) {
    if (auto* const own = std::get_if<detail::own_launch>(&settings_.by)) {
        require_hosts("hosts", names);
        own->hosts = std::move(names);
    } else if (auto* const ssh = std::get_if<detail::ssh_launch>(&settings_.by)) {
        require_hosts_for_ssh("hosts", names);
        ssh->hosts = std::move(names);
    } else {
        throw std::invalid_argument(
            "cohort: hosts: slurm() takes the nodes of its job, see nodes()");
    }
    return *this;
}

launcher& launcher::nodes(int n) {
    auto* const slurm = std::get_if<detail::slurm_launch>(&settings_.by);
    if (slurm == nullptr)
        throw std::invalid_argument("cohort: nodes: this launcher is not slurm(), see hosts()");
    if (n < 1)
        throw std::invalid_argument(fmt::format("cohort: nodes: less than 1 ({})", n));
    slurm->nodes = n;
    return *this;
}

launcher& launcher::add_arguments(std::vector<std::string> words) {
    auto* const ssh = std::get_if<detail::ssh_launch>(&settings_.by);
    auto* const slurm = std::get_if<detail::slurm_launch>(&settings_.by);
    if (ssh == nullptr && slurm == nullptr)
        throw std::invalid_argument(
            "cohort: arguments: this launcher's callable makes them, with its command");
    auto& kept = ssh != nullptr ? ssh->arguments : slurm->arguments;
    auto all = kept;
    for (auto& word : words) {
        require_no_nul(word, "an argument of a launcher");
        all.push_back(std::move(word));
    }
    ssh != nullptr ? multihost::require_ssh_options(all) : multihost::require_srun_options(all);
    kept = std::move(all);
    return *this;
}

launcher& launcher::program(std::string path) {
    require_path("program", path);
    if (path.starts_with('-'))
        throw std::invalid_argument(fmt::format(
            "cohort: program: \"{}\" begins with '-': ssh and srun take it for an option", path));
    settings_.program_path = std::move(path);
    return *this;
}

launcher& launcher::set_reach_within(detail::steady_duration d) {
    if (d <= detail::steady_duration::zero())
        throw std::invalid_argument("cohort: reach_within: the duration is not above 0");
    settings_.reach_within = d;
    return *this;
}

launcher& launcher::set_host_timeout(detail::steady_duration d) {
    if (d < std::chrono::seconds(2))
        throw std::invalid_argument(
            "cohort: host_timeout: less than 2 s, but each end sends a beat only each second");
    settings_.host_timeout = d;
    return *this;
}

launcher& launcher::set_variable(std::string name, std::string value) {
    detail::placement checked;
    checked.set_variable(std::move(name), std::move(value));
    settings_.env.push_back(std::move(checked.env.front()));
    return *this;
}

launcher& launcher::working_directory(std::string path) {
    require_path("working_directory", path);
    settings_.working_directory = std::move(path);
    return *this;
}

launcher& launcher::set_port(std::int64_t n) {
    if (n < 1 || n > 65535)
        throw std::invalid_argument("cohort: port: not from 1 to 65535");
    settings_.port = static_cast<int>(n);
    return *this;
}

launcher slurm() { return detail::launcher_access::make(detail::slurm_launch()); }

launcher detail::ssh_to(std::vector<std::string> hosts) {
    require_hosts_for_ssh("ssh", hosts);
    return launcher_access::make(ssh_launch{std::move(hosts), {}});
}

std::string shell_quoted(const std::vector<std::string>& words) {
    for (const auto& word : words)
        require_no_nul(word, "a word for a shell");
    return base::shell_line(words);
}

}  // namespace cohort
