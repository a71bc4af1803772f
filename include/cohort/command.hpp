// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/argument_text.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/plan.hpp>
#include <cohort/where_it_runs.hpp>

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

namespace cohort {

namespace detail::inline v0_1 {
struct command_access;
}

/// A program that a worker executes: `command("python3", "train.py", "--lr", 0.1).env("LEVEL", 3)`.
/// Arguments are text, paths, or anything that fmt can format; no shell interprets them. A program
/// name with a slash is a path, relative to the worker's working directory; one without a slash is
/// looked up in the worker's PATH. A value: copies and compares.
/// @par Thread safety  distinct objects: safe. One object: unsafe if a thread changes it.
class COHORT_API command : public where_it_runs<command> {
public:
    /// A command with its first arguments.
    /// @param program  the name or path of the program: text or a path
    /// @param args     the arguments that follow the program, see arg()
    /// @throws std::invalid_argument  the program name is empty, or a text contains a NUL
    template <class Program, class... Args>
    requires(!std::derived_from<Program, command>) explicit command(const Program& program,
                                                                    const Args&... args) {
        static_assert(detail::text_like<Program> || detail::path_like<Program>,
                      "cohort: the program of a command must be text or a path");
        set_program(detail::argument_text(program));
        (this->arg(args), ...);
    }

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

// In a co_await expression, GCC before 13 destroys a temporary twice if it is a lambda that
// captures by value.
template <class Callable>
inline constexpr bool safe_as_temporary =
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
    std::is_lvalue_reference_v<Callable> ||
    (std::is_trivially_copyable_v<Callable> && std::is_trivially_destructible_v<Callable>);
#else
    true;
#endif

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

/// The result of closure().
template <class Callable>
class closure_work {
public:
    explicit closure_work(const Callable& call) : call_(call) {}
    explicit closure_work(Callable&& call) : call_(std::move(call)) {}
    Callable&& callable() && noexcept { return std::move(call_); }

private:
    Callable call_;
};

}  // namespace detail::inline v0_1

/// Work for a group in which each worker executes another command. Pass the result to spawn, run or
/// async_spawn.
/// @param make  a callable `command make(int index)`. spawn, run and async_spawn call it on the
///              calling thread, for index 0, 1, ... An exception from it leaves spawn or run;
///              async_spawn gives it to the completion handler.
/// @par Thread safety  safe.
template <class Make>
auto command_for(Make&& make) {
    using callable = std::decay_t<Make>;
    static_assert(std::is_invocable_r_v<command, callable&, int>,
                  "cohort: command_for takes a callable(int index) that returns a cohort::command");
    static_assert(detail::safe_as_temporary<Make>, "GCC 12: name the lambda first");
    return detail::command_for_work<callable>(std::forward<Make>(make));
}

/// Work for a group with start_method::fork: worker i calls `call(i)` in a forked copy of this
/// process. Pass the result to spawn, run or async_spawn. The value that a call returned is in
/// `outcome::result<T>()`; an exception that left a call is thrown by group::join, as
/// process_raised_exception.
///
/// The worker has only one thread, a copy of a thread of the library. A lock that another thread
/// held at the fork stays locked, and thread_local variables are fresh; start_method::fork says
/// more. Where that is too dangerous, use function<Fn> with start_method::forkserver.
/// @param call  a callable `T call(int index)`, kept until the group has started. If its copy
///              constructor throws, that exception leaves closure.
/// @throws spawn_error  thrown by spawn, not here: options::start_method is not fork
/// @par Thread safety  safe.
/// @par Source  start_processes(fn, start_method="fork")
template <class Callable>
auto closure(Callable&& call) {
    using callable = std::decay_t<Callable>;
    static_assert(std::is_invocable_v<callable&, int>,
                  "cohort: closure takes a callable(int index)");
    static_assert(detail::safe_as_temporary<Callable>, "GCC 12: name the lambda first");
    return detail::closure_work<callable>(std::forward<Callable>(call));
}

}  // namespace cohort
