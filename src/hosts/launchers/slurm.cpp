// SPDX-License-Identifier: BSL-1.0
#include "hosts/launchers/slurm.hpp"

#include "base/text/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <stdexcept>

namespace cohort::multihost {
namespace {

constexpr std::size_t most_nodes = 10'000;
constexpr std::size_t longest_node_name = 255;

/// The value of a variable; empty: it is not set.
std::string_view value_in(std::span<const std::string> environment, std::string_view name) {
    for (const std::string_view entry : environment)
        if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
            return entry.substr(name.size() + 1);
    return {};
}

std::string_view first_set(std::span<const std::string> environment, std::string_view name,
                           std::string_view older_name) {
    const auto value = value_in(environment, name);
    return value.empty() ? value_in(environment, older_name) : value;
}

bool is_of_slurm(std::string_view name) {
    constexpr std::array<std::string_view, 5> prefixes{"SLURM_", "SRUN_", "SLURMD_", "SBATCH_",
                                                       "SALLOC_"};
    return std::ranges::any_of(prefixes,
                               [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Whether the variable says where the cluster is, or who asks.
bool is_kept(std::string_view name, std::span<const std::string> environment) {
    if (name == "SLURM_CLUSTERS") {
        // A user may have set it for other jobs. Srun would look for the job there.
        const auto clusters = value_in(environment, name);
        return !clusters.empty() && clusters == value_in(environment, "SLURM_CLUSTER_NAME");
    }
    return name == "SLURM_CONF" || name == "SLURM_WORKING_CLUSTER" || name == "SLURM_JWT" ||
           name == "SLURM_SACK_SOCKET";
}

struct srun_option {
    std::string_view letter;  // with its '-'; empty: it has none
    std::string_view name;
};

// From srun(1). They send the streams elsewhere or change them, or say how many agents start where.
constexpr std::array<srun_option, 11> own_options{{{"-l", "--label"},
                                                   {"-i", "--input"},
                                                   {"-o", "--output"},
                                                   {"-e", "--error"},
                                                   {"", "--pty"},
                                                   {"", "--multi-prog"},
                                                   {"-N", "--nodes"},
                                                   {"-n", "--ntasks"},
                                                   {"-w", "--nodelist"},
                                                   {"-x", "--exclude"},
                                                   {"", "--jobid"}}};

bool is_option(std::string_view word, const srun_option& option) {
    if (!option.letter.empty() && word.starts_with(option.letter))
        return true;
    return word.starts_with(option.name) &&
           (word.size() == option.name.size() || word[option.name.size()] == '=');
}

bool asks_for_gpus(const std::vector<std::string>& words) {
    return std::ranges::any_of(words, [](std::string_view word) {
        return word.starts_with("--gres") || word.starts_with("--gpus") || word.starts_with("-G") ||
               word.starts_with("--tres-per-task");
    });
}

void require_node_name(std::string_view name) {
    const auto is_part = [](unsigned char c) { return c > ' ' && c < 0x7f; };
    if (name.size() > longest_node_name || name.starts_with('-') ||
        !std::ranges::all_of(name, is_part))
        throw std::runtime_error(
            fmt::format("scontrol's output has a line that is no name of a node: \"{}\"",
                        name.substr(0, longest_node_name)));
}

}  // namespace

void require_srun_options(const std::vector<std::string>& words) {
    for (const auto& word : words)
        for (const auto& option : own_options)
            if (is_option(word, option))
                throw std::invalid_argument(
                    fmt::format("cohort: arguments: srun's option {} would break the link, or is "
                                "the library's own (\"{}\")",
                                option.name, word));
}

std::vector<detail::env_change> slurm_scrub(std::span<const std::string> environment) {
    std::vector<detail::env_change> changes;
    std::set<std::string_view> seen;
    for (const std::string_view entry : environment) {
        const auto name = entry.substr(0, entry.find('='));
        if (is_of_slurm(name) && name.size() < entry.size() && !is_kept(name, environment) &&
            seen.insert(name).second)
            changes.push_back({std::string(name), std::nullopt});
    }
    return changes;
}

slurm_job slurm_job_of(const detail::slurm_launch& how, std::span<const std::string> environment,
                       const std::string& program) {
    const auto id = first_set(environment, "SLURM_JOB_ID", "SLURM_JOBID");
    const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
    if (id.empty() || !std::ranges::all_of(id, is_digit) ||
        first_set(environment, "SLURM_JOB_NODELIST", "SLURM_NODELIST").empty())
        throw std::logic_error(
            fmt::format("cohort: slurm() is for programs in an allocation, but SLURM_JOB_ID and "
                        "SLURM_JOB_NODELIST name none here. Start the program in one:\n"
                        "    salloc --nodes={} --no-kill {}",
                        how.nodes == 0 ? 2 : how.nodes, base::shell_line({program})));
    return {std::string(id), how.nodes, how.arguments, slurm_scrub(environment),
            asks_for_gpus(how.arguments)};
}

detail::program slurm_names_command(const slurm_job& job,
                                    std::span<const std::string> environment) {
    const auto list = first_set(environment, "SLURM_JOB_NODELIST", "SLURM_NODELIST");
    detail::program made{{"scontrol", "show", "hostnames", std::string(list)}, {}};
    made.where.env = job.scrub;
    return made;
}

std::vector<std::string> slurm_names(std::string_view printed) {
    std::vector<std::string> names;
    std::set<std::string_view> seen;
    while (!printed.empty()) {
        const auto line = printed.substr(0, printed.find('\n'));
        printed.remove_prefix(std::min(line.size() + 1, printed.size()));
        if (line.empty())
            continue;
        require_node_name(line);
        if (!seen.insert(line).second)
            throw std::runtime_error(
                fmt::format("scontrol's output names the node \"{}\" twice", line));
        if (names.size() == most_nodes)
            throw std::runtime_error(
                fmt::format("scontrol's output has more than {} nodes", most_nodes));
        names.emplace_back(line);
    }
    if (names.empty())
        throw std::runtime_error("scontrol's output names no node");
    return names;
}

detail::program srun_command(const slurm_job& job, const std::string& node,
                             const std::vector<std::string>& agent) {
    detail::program made{{"srun", "--jobid=" + job.id, "-N1", "-n1", "-w", node, "--overlap",
                          "--mem=0", "--mpi=none", "--cpu-bind=none", "--no-kill",
                          "--kill-on-bad-exit=0", "--wait=0"},
                         {}};
    for (const auto* words : {&job.arguments, &agent})
        made.argv.insert(made.argv.end(), words->begin(), words->end());
    made.where.env = job.scrub;
    // Slurm then gives the step what the job has on its node, GPUs included. 22.05 ignores it.
    made.where.env.push_back({"SLURM_EXTERNAL_LAUNCHER", "1"});
    return made;
}

}  // namespace cohort::multihost
