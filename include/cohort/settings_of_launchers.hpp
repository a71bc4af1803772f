// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/argument_text.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/launch_plan.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
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

/// The setters that all launchers share: what runs at the hosts, and how long a host may be silent.
/// Each returns the object itself. A setter of a duration takes any chrono duration, also `0.5s`.
/// It rounds up to the unit of steady_clock, and limits the duration to that clock's range.
template <class Derived>
class settings_of_launchers {
public:
    /// The program that runs at each host as cohort's agent. It must be this very build, and must
    /// call worker_main. By default the path of this program here, read when the hosts are reached.
    /// @param path  where a host has it. A relative path with a slash is relative to the caller's
    ///              working directory, as a path; a name without a slash is looked up at the host.
    /// @throws std::invalid_argument  the path is empty, contains a NUL, or begins with '-', which
    ///         ssh and srun take for an option of their own
    /// @source /proc/pid/exe of proc(5)
    Derived& program(std::string path) {
        settings().set_program(std::move(path));
        return self();
    }

    /// How long reaching all the hosts may take, from the call to the last agent's hello. Default
    /// 60 s.
    /// @param d  on steady_clock
    /// @throws std::invalid_argument  `d` is not above 0, or not a number
    template <class Rep, class Period>
    Derived& reach_within(std::chrono::duration<Rep, Period> d) {
        settings().set_reach_within(detail::to_option_duration("reach_within", d));
        return self();
    }

    /// How long nothing may come from a host before the host counts as lost. The agent there counts
    /// in the same way: after that span without a word from here it stops its workers and ends.
    /// Default 10 s.
    /// @param d  on steady_clock
    /// @throws std::invalid_argument  `d` is less than 2 s, because each end sends a beat only each
    ///         second; or it is not a number
    template <class Rep, class Period>
    Derived& host_timeout(std::chrono::duration<Rep, Period> d) {
        settings().set_host_timeout(detail::to_option_duration("host_timeout", d));
        return self();
    }

    /// Sets a variable in the environment of the agents, and so of their workers. It is not given
    /// to the command that reaches a host.
    /// @param name   not empty, and without '=' and NUL
    /// @param value  text, a path, or anything that fmt can format
    /// @throws std::invalid_argument  no environment can hold the name or the value, or only the
    ///         library sets this variable, see where_it_runs::env
    template <class Value>
    Derived& env(std::string name, const Value& value) {
        settings().set_variable(std::move(name), detail::argument_text(value));
        return self();
    }

    /// The directory in which the agents run, and so their workers; a host that does not have it is
    /// an error. By default the caller's, at the hosts that have it, and elsewhere the one in which
    /// the launcher starts its program.
    /// @param path  at the hosts; a relative one is relative to the caller's directory, as a path
    /// @throws std::invalid_argument  the path is empty or contains a NUL
    Derived& working_directory(std::string path) {
        settings().set_working_directory(std::move(path));
        return self();
    }

    /// The number that workers on these hosts find in MASTER_PORT. Nothing listens there: it is for
    /// the user's own library, such as torch's. Default 29500.
    /// @param n  from 1 to 65535
    /// @throws std::invalid_argument  `n` is out of that range
    /// @source MASTER_PORT of torch.distributed
    template <std::integral Number>
    Derived& port(Number n) {
        settings().set_port(std::in_range<std::int64_t>(n) ? static_cast<std::int64_t>(n) : -1);
        return self();
    }

private:
    friend Derived;
    friend struct detail::launcher_access;
    settings_of_launchers() = default;

    Derived& self() noexcept { return static_cast<Derived&>(*this); }
    detail::launch_settings& settings() noexcept { return settings_; }

    detail::launch_settings settings_;

    friend bool operator==(const settings_of_launchers&, const settings_of_launchers&) = default;
};

}  // namespace cohort
