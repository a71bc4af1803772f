// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/command.hpp>
#include <cohort/detail/argument_text.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/gcc12.hpp>
#include <cohort/detail/launch_settings.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {

namespace detail::inline v0_1 {

struct launcher_access;

template <class T>
concept word = text_like<T> || path_like<T>;

/// A range of words, such as std::vector<std::string>.
template <class T>
concept range_of_words = !word<T> && std::ranges::input_range<const T&> &&
                         word<std::remove_cvref_t<std::ranges::range_reference_t<const T&>>>;

template <range_of_words Range>
std::vector<std::string> words_of(const Range& range) {
    std::vector<std::string> words;
    for (const auto& each : range)
        words.push_back(argument_text(each));
    return words;
}

}  // namespace detail::inline v0_1

/// How hosts are reached: slurm() and ssh() make one, and a callable of the user's own, for
/// commands such as kubectl, flux or podman:
/// `launcher([](const std::string& host, const std::vector<std::string>& agent) {
/// return command("kubectl", "exec", "-i", host, "--").args(agent); }).hosts("pod-0", "pod-1")`.
///
/// Each setter returns the object itself. A setter of a duration takes any chrono duration, also
/// `0.5s`. It rounds up to the unit of steady_clock, and limits the duration to that clock's range.
/// A value: copies and compares; equal ones share one callable.
/// @thread_safety distinct objects: safe. One object: unsafe if a thread changes it.
class COHORT_API launcher final {
public:
    /// The command must connect its standard input and output with those of the agent, and may
    /// change nothing in what passes; what the agent writes to standard error comes out at the
    /// command's.
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
        settings_.by = detail::own_launch{
            {},
            std::make_shared<const detail::make_launch>(
                [call = std::forward<Make>(make)](const std::string& host,
                                                  const std::vector<std::string>& agent) mutable {
                    return detail::command_access::program(command(call(host, agent)));
                })};
    }

    /// The hosts, in the order in which groups use them. Replaces those of an earlier call, and
    /// those of ssh().
    /// @param first  the name of a host, as the callable or ssh takes it: text or a path
    /// @param more   more names
    /// @throws std::invalid_argument  a name is empty, comes twice, or has a NUL or a newline; for
    ///         ssh it begins with '-'; slurm() takes the nodes of its job
    template <detail::word First, detail::word... More>
    launcher& hosts(const First& first, const More&... more) {
        return set_hosts({detail::argument_text(first), detail::argument_text(more)...});
    }
    /// The hosts that a range names.
    /// @throws std::invalid_argument  the range is empty; else as above
    template <detail::range_of_words Range>
    launcher& hosts(const Range& names) {
        return set_hosts(detail::words_of(names));
    }

    /// Of slurm(): takes the first `n` nodes of the allocation. Default: all. If the allocation has
    /// fewer, the call that reaches them throws std::invalid_argument.
    /// @throws std::invalid_argument  `n` is less than 1; this launcher is not slurm()
    launcher& nodes(int n);

    /// Adds options for srun or ssh, behind those of the library:
    /// `slurm().arguments("--gres=gpu:8")`, `ssh("a").arguments("-p", 2222)`.
    /// @param words  text, paths, or anything that fmt can format
    /// @throws std::invalid_argument  a word contains a NUL; it is an option that would break the
    ///         link or start another number of agents, such as --label, --pty and --ntasks of srun,
    ///         and -n, -t, -f, -N and -s of ssh; for ssh it is no option; this launcher calls the
    ///         user's own callable, which makes all arguments
    /// @source srun(1), ssh(1)
    template <class... Words>
    launcher& arguments(const Words&... words) {
        return add_arguments({detail::argument_text(words)...});
    }

    /// The program that runs at each host as cohort's agent. It must be this very build, and must
    /// call worker_main. By default the path of this program here, read when the hosts are reached.
    /// @param path  where a host has it. A relative path with a slash is relative to the caller's
    ///              working directory, as a path; a name without a slash is looked up at the host.
    /// @throws std::invalid_argument  the path is empty, contains a NUL, or begins with '-', which
    ///         ssh and srun take for an option of their own
    /// @source /proc/pid/exe of proc(5)
    launcher& program(std::string path);

    /// How long reaching all the hosts may take, from the call to the last agent's hello. Default
    /// 60 s.
    /// @param d  on steady_clock
    /// @throws std::invalid_argument  `d` is not above 0, or not a number
    template <class Rep, class Period>
    launcher& reach_within(std::chrono::duration<Rep, Period> d) {
        return set_reach_within(detail::to_option_duration("reach_within", d));
    }

    /// How long nothing may come from a host before the host counts as lost. The agent there counts
    /// in the same way: after that span without a word from here it stops its workers and ends.
    /// Default 10 s.
    /// @param d  on steady_clock
    /// @throws std::invalid_argument  `d` is less than 2 s, because each end sends a beat only each
    ///         second; or it is not a number
    template <class Rep, class Period>
    launcher& host_timeout(std::chrono::duration<Rep, Period> d) {
        return set_host_timeout(detail::to_option_duration("host_timeout", d));
    }

    /// Sets a variable in the environment of the agents, and so of their workers. It is not given
    /// to the command that reaches a host.
    /// @param name   not empty, and without '=' and NUL
    /// @param value  text, a path, or anything that fmt can format
    /// @throws std::invalid_argument  no environment can hold the name or the value, or only the
    ///         library sets this variable, see where_it_runs::env
    template <class Value>
    launcher& env(std::string name, const Value& value) {
        return set_variable(std::move(name), detail::argument_text(value));
    }

    /// The directory in which the agents run, and so their workers; a host that does not have it is
    /// an error. By default the caller's, at the hosts that have it, and elsewhere the one in which
    /// the launcher starts its program.
    /// @param path  at the hosts; a relative one is relative to the caller's directory, as a path
    /// @throws std::invalid_argument  the path is empty or contains a NUL
    launcher& working_directory(std::string path);

    /// The number that workers on these hosts find in MASTER_PORT. Nothing listens there: it is for
    /// the user's own library, such as torch's. Default 29500.
    /// @param n  from 1 to 65535
    /// @throws std::invalid_argument  `n` is out of that range
    /// @source MASTER_PORT of torch.distributed
    template <std::integral Number>
    launcher& port(Number n) {
        return set_port(std::in_range<std::int64_t>(n) ? static_cast<std::int64_t>(n) : -1);
    }

    /// Whether all settings are equal.
    friend bool operator==(const launcher&, const launcher&) = default;

private:
    friend struct detail::launcher_access;

    struct made_by_library {};
    launcher(made_by_library, detail::launch_settings::way by) { settings_.by = std::move(by); }

    launcher& set_hosts(std::vector<std::string> names);
    launcher& add_arguments(std::vector<std::string> words);
    launcher& set_reach_within(detail::steady_duration d);
    launcher& set_host_timeout(detail::steady_duration d);
    launcher& set_variable(std::string name, std::string value);
    launcher& set_port(std::int64_t n);

    detail::launch_settings settings_;
};

namespace detail::inline v0_1 {

struct launcher_access {
    static launcher make(launch_settings::way by) {
        return launcher(launcher::made_by_library(), std::move(by));
    }
    static const launch_settings& settings(const launcher& of) noexcept { return of.settings_; }
};

/// The launcher behind ssh().
COHORT_API launcher ssh_to(std::vector<std::string> hosts);

}  // namespace detail::inline v0_1

/// A launcher for the nodes of the Slurm job in which this program runs: `slurm().nodes(4)`. Each
/// node is reached by a step of its own, beside what else runs in the job (srun --overlap), with
/// all CPUs and memory that the job has there. Variables SLURM_* and SRUN_* of this program have no
/// effect on srun, except those that say where the cluster is.
///
/// Outside of an allocation the call that reaches the nodes throws std::logic_error. Use
/// `salloc --no-kill`: without it Slurm ends the whole job when one node is lost.
/// @thread_safety safe.
/// @source srun(1) and salloc(1); node names: `scontrol show hostnames`, see scontrol(1)
COHORT_API launcher slurm();

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
launcher ssh(const First& first, const More&... more) {
    return detail::ssh_to({detail::argument_text(first), detail::argument_text(more)...});
}
/// A launcher for the hosts that a range names.
/// @throws std::invalid_argument  the range is empty; a name is empty, comes twice, begins with
///         '-', or has a NUL or a newline
/// @thread_safety safe.
template <detail::range_of_words Range>
launcher ssh(const Range& hosts) {
    return detail::ssh_to(detail::words_of(hosts));
}

/// The words as one line for a shell, which makes the same words of it: `/bin/sh -c 'exit 3'`. For
/// launchers whose command gives what follows to a shell, as ssh does.
/// @param words  a program and its arguments
/// @return in the quotes of sh; empty: there are no words
/// @throws std::invalid_argument  a word contains a NUL
/// @thread_safety safe.
/// @source "Quoting" in POSIX.1-2017, Shell Command Language, 2.2
COHORT_API std::string shell_quoted(const std::vector<std::string>& words);

}  // namespace cohort
