// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/command.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/gcc12.hpp>
#include <cohort/detail/launch_plan.hpp>
#include <cohort/settings_of_launchers.hpp>

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {

/// Reaches hosts by commands that the user makes, such as kubectl, flux or podman:
/// `launcher([](const std::string& host, const std::vector<std::string>& agent) {
/// return command("kubectl", "exec", "-i", host, "--").args(agent); }).hosts("pod-0", "pod-1")`.
/// The command must connect its standard input and output with those of the agent, and may change
/// nothing in what passes; what the agent writes to standard error comes out at the command's.
/// A value: copies and compares; equal ones share one callable.
/// @thread_safety distinct objects: safe. One object: unsafe if a thread changes it.
class COHORT_API launcher : public settings_of_launchers<launcher> {
public:
    /// @param make  a callable `command make(const std::string& host, const
    ///              std::vector<std::string>& agent)`. It is called for each host when the hosts
    ///              are reached, on the calling thread. `agent` is a program with its arguments,
    ///              for the end of the command; see shell_quoted for commands that pass a shell. An
    ///              exception from it ends the call that reaches the hosts.
    template <class Make>
    requires(!std::same_as<std::decay_t<Make>, launcher>) explicit launcher(Make&& make) {
        static_assert(std::is_invocable_r_v<command, std::decay_t<Make>&, const std::string&,
                                            const std::vector<std::string>&>,
                      "cohort: launcher takes a callable(const std::string& host, const "
                      "std::vector<std::string>& agent) that returns a cohort::command");
        static_assert(detail::safe_as_temporary<Make>, "GCC 12: name the lambda first");
        settings().set_own(
            [call = std::forward<Make>(make)](const std::string& host,
                                              const std::vector<std::string>& agent) mutable {
                return detail::command_access::program(command(call(host, agent)));
            });
    }

    /// The hosts, in the order in which groups use them. Replaces those of an earlier call.
    /// @param first  the name of a host, as the callable takes it: text or a path
    /// @param more   more names
    /// @throws std::invalid_argument  a name is empty, comes twice, or has a NUL or a newline
    template <detail::word First, detail::word... More>
    launcher& hosts(const First& first, const More&... more) {
        settings().set_hosts({detail::argument_text(first), detail::argument_text(more)...});
        return *this;
    }
    /// The hosts that a range names.
    /// @throws std::invalid_argument  the range is empty; a name is empty, comes twice, or has a
    ///         NUL or a newline
    template <detail::range_of_words Range>
    launcher& hosts(const Range& names) {
        settings().set_hosts(detail::words_of(names));
        return *this;
    }

    /// Whether all settings are equal.
    friend bool operator==(const launcher&, const launcher&) = default;
};

/// Reaches the nodes of the Slurm job in which this program runs, by srun; see slurm(). A value:
/// copies and compares.
/// @thread_safety distinct objects: safe. One object: unsafe if a thread changes it.
class COHORT_API slurm_launcher : public settings_of_launchers<slurm_launcher> {
public:
    /// All nodes; see slurm().
    slurm_launcher();

    /// Takes the first `n` nodes of the allocation. Default: all. If the allocation has fewer, the
    /// call that reaches them throws std::invalid_argument.
    /// @throws std::invalid_argument  `n` is less than 1
    slurm_launcher& nodes(int n) {
        settings().set_nodes(n);
        return *this;
    }

    /// Adds options for srun, behind those of the library: `arguments("--gres=gpu:8")`.
    /// @param words  text, paths, or anything that fmt can format
    /// @throws std::invalid_argument  a word contains a NUL, or is an option that would break the
    ///         link or start another number of agents, such as --label, --pty and --ntasks
    /// @source srun(1)
    template <class... Words>
    slurm_launcher& arguments(const Words&... words) {
        settings().add_arguments({detail::argument_text(words)...});
        return *this;
    }

    /// Whether all settings are equal.
    friend bool operator==(const slurm_launcher&, const slurm_launcher&) = default;
};

/// Reaches hosts by ssh; see ssh(). A value: copies and compares.
/// @thread_safety distinct objects: safe. One object: unsafe if a thread changes it.
class COHORT_API ssh_launcher : public settings_of_launchers<ssh_launcher> {
public:
    /// These hosts; see ssh().
    /// @throws std::invalid_argument  there is none; a name is empty, comes twice, begins with
    ///         '-', or has a NUL or a newline
    explicit ssh_launcher(std::vector<std::string> hosts);

    /// Adds options for ssh: `arguments("-p", 2222)`.
    /// @param words  text, paths, or anything that fmt can format
    /// @throws std::invalid_argument  a word contains a NUL; it is -n, -t, -f, -N, -s or another
    ///         option with which ssh does not connect the agent's standard streams; or it is no
    ///         option
    /// @source ssh(1)
    template <class... Words>
    ssh_launcher& arguments(const Words&... words) {
        settings().add_arguments({detail::argument_text(words)...});
        return *this;
    }

    /// Whether all settings are equal.
    friend bool operator==(const ssh_launcher&, const ssh_launcher&) = default;
};

/// A launcher for the nodes of the Slurm job in which this program runs: `slurm().nodes(4)`. Each
/// node is reached by a step of its own, beside what else runs in the job (srun --overlap), with
/// all CPUs and memory that the job has there. Variables SLURM_* and SRUN_* of this program have no
/// effect on srun, except those that say where the cluster is.
///
/// Outside of an allocation the call that reaches the nodes throws std::logic_error. Use
/// `salloc --no-kill`: without it Slurm ends the whole job when one node is lost.
/// @thread_safety safe.
/// @source srun(1) and salloc(1); node names: `scontrol show hostnames`, see scontrol(1)
COHORT_API slurm_launcher slurm();

/// A launcher for hosts that are reached by ssh, without a password and without a pseudo-terminal
/// (-T -o BatchMode=yes): `ssh("a", "b").arguments("-p", 2222)`. At most 8 connections are made at
/// a time, because sshd drops more (MaxStartups). The words that start the agent are quoted for the
/// shell that the user has there.
/// @param first  a host as ssh takes it: a name, `user@name`, or an alias from ssh's configuration
/// @param more   more of these
/// @throws std::invalid_argument  a name is empty, comes twice, begins with '-', or has a NUL or a
///         newline
/// @thread_safety safe.
/// @source ssh(1); MaxStartups of sshd_config(5)
template <detail::word First, detail::word... More>
ssh_launcher ssh(const First& first, const More&... more) {
    return ssh_launcher({detail::argument_text(first), detail::argument_text(more)...});
}
/// A launcher for the hosts that a range names.
/// @throws std::invalid_argument  the range is empty; a name is empty, comes twice, begins with
///         '-', or has a NUL or a newline
/// @thread_safety safe.
template <detail::range_of_words Range>
ssh_launcher ssh(const Range& hosts) {
    return ssh_launcher(detail::words_of(hosts));
}

/// The words as one line for a shell, which makes the same words of it: `/bin/sh -c 'exit 3'`. For
/// launchers whose command gives what follows to a shell, as ssh does.
/// @param words  a program and its arguments
/// @return in the quotes of sh; empty: there are no words
/// @throws std::invalid_argument  a word contains a NUL
/// @thread_safety safe.
/// @source "Quoting" in POSIX.1-2017, Shell Command Language, 2.2
COHORT_API std::string shell_quoted(const std::vector<std::string>& words);

namespace detail::inline v0_1 {

/// Any of the launchers.
template <class T>
concept launches =
    std::same_as<T, launcher> || std::same_as<T, slurm_launcher> || std::same_as<T, ssh_launcher>;

struct launcher_access {
    template <launches Launcher>
    static const launch_settings& settings(const Launcher& of) noexcept {
        return of.settings_;
    }
};

}  // namespace detail::inline v0_1

}  // namespace cohort
