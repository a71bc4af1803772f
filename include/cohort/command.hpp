// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/argument_text.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/gcc12.hpp>
#include <cohort/detail/plan.hpp>
#include <cohort/where_it_runs.hpp>

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {

namespace detail::inline v0_1 {
struct command_access;
}

/// A program that a worker executes: `command("python3", "train.py", "--lr", 0.1).env("LEVEL", 3)`.
/// Arguments are text, paths, or anything that fmt can format; no shell interprets them. A program
/// name with a slash is a path, relative to the worker's working directory; one without a slash is
/// looked up in the worker's PATH. A value: copies and compares.
/// @thread_safety distinct objects: safe. One object: unsafe if a thread changes it.
class COHORT_API command : public where_it_runs<command> {
public:
    /// A command with its first arguments.
    /// @param program  the name or path of the program: text or a path
    /// @param args     the arguments that follow the program, see arg()
    /// @throws std::invalid_argument  the program name is empty, or a text contains a NUL
    template <class Program, class... Args>
        requires(!std::derived_from<Program, command>)
    explicit command(const Program& program, const Args&... args) {
        static_assert(detail::text_like<Program> || detail::path_like<Program>,
                      "cohort: the program of a command must be text or a path");
        set_program(detail::argument_text(program));
        (this->arg(args), ...);
    }

    /// A command of these words: the program, then its arguments.
    /// @throws std::invalid_argument  there is no word, the first is empty, or one contains a NUL
    explicit command(const std::vector<std::string>& words);

    /// Appends one argument: text, a path, or anything that fmt can format.
    /// @throws std::invalid_argument  the argument contains a NUL
    template <class T>
    command& arg(const T& value) {
        add(detail::argument_text(value));
        return *this;
    }

    /// Appends each element of a range, see arg().
    /// @throws std::invalid_argument  an element contains a NUL
    template <class Range>
    command& args(const Range& range) {
        static_assert(!detail::text_like<Range>,
                      "cohort: args takes a range of arguments; for one text use arg");
        for (const auto& value : range)
            arg(value);
        return *this;
    }

    /// Whether program, arguments and settings are equal.
    friend bool operator==(const command&, const command&) = default;

private:
    friend struct detail::command_access;
    friend class where_it_runs<command>;
    friend class limits_of<command>;

    void set_program(std::string name);
    void add(std::string text);
    detail::placement& placed() noexcept { return program_.where; }

    detail::program program_;
};

namespace detail::inline v0_1 {

struct command_access {
    static const detail::program& program(const command& c) noexcept { return c.program_; }
    static detail::program&& program(command&& c) noexcept { return std::move(c.program_); }
};

/// The result of command_for().
template <class Make>
class command_for_work {
public:
    explicit command_for_work(const Make& make) : make_(make) {}
    explicit command_for_work(Make&& make) : make_(std::move(make)) {}
    command operator()(int index) const { return make_(index); }

private:
    mutable Make make_;  // mutable, because a callable may change its own state
};

}  // namespace detail::inline v0_1

/// Work for a group in which each worker executes another command. Pass the result to spawn, run or
/// async_spawn.
/// @param make  a callable `command make(int index)`. spawn, run and async_spawn call it on the
///              calling thread, for index 0, 1, ... An exception from it leaves spawn or run;
///              async_spawn gives it to the completion handler.
/// @thread_safety safe.
template <class Make>
auto command_for(Make&& make) {
    using callable = std::decay_t<Make>;
    static_assert(std::is_invocable_r_v<command, callable&, int>,
                  "cohort: command_for takes a callable(int index) that returns a cohort::command");
    static_assert(detail::safe_as_temporary<Make>, "GCC 12: name the lambda first");
    return detail::command_for_work<callable>(std::forward<Make>(make));
}

}  // namespace cohort
