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

/// A program to run: `command("python3", "train.py", "--lr", 0.1).env("LEVEL", 3)`. Arguments are
/// text, paths, or anything that fmt can format; no shell sees them. A program with a slash is
/// relative to the working directory; one without is looked up on the worker's PATH. A value:
/// copies and compares.
/// @par Thread safety  as an int.
class COHORT_API command : public where_it_runs<command> {
public:
    /// @throws std::invalid_argument  an empty program name; a NUL in a text
    template <class Program, class... Args>
    requires(!std::derived_from<Program, command>) explicit command(const Program& program,
                                                                    const Args&... args) {
        static_assert(detail::text_like<Program> || detail::path_like<Program>,
                      "cohort: the program of a command must be text or a path");
        set_program(detail::argument_text(program));
        (this->arg(args), ...);
    }

    /// Appends one argument. @throws std::invalid_argument  a NUL in it
    template <class T>
    command& arg(const T& value) {
        add(detail::argument_text(value));
        return *this;
    }

    /// Appends each element of a range. @throws std::invalid_argument  a NUL in one
    template <class Range>
    command& args(const Range& range) {
        static_assert(!detail::text_like<Range>,
                      "cohort: args takes a range of arguments; for one text use arg");
        for (const auto& value : range)
            arg(value);
        return *this;
    }

    /// The same program, arguments and place. @par Thread safety  as an int.
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

// GCC before 13 destroys a lambda that captures by value twice when it is a temporary in a co_await
// expression.
template <class Callable>
inline constexpr bool safe_as_temporary =
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
    std::is_lvalue_reference_v<Callable> ||
    (std::is_trivially_copyable_v<Callable> && std::is_trivially_destructible_v<Callable>);
#else
    true;
#endif

/// What command_for makes.
template <class Make>
class command_for_work {
public:
    explicit command_for_work(const Make& make) : make_(make) {}
    explicit command_for_work(Make&& make) : make_(std::move(make)) {}
    command operator()(int index) const { return make_(index); }

private:
    mutable Make make_;  // a callable may change what it holds
};

/// What closure makes.
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

/// A command of its own for each worker.
/// @param make  `command make(int index)`; called for 0, 1, ... in the initiating call of spawn, on
///              its thread. What it throws leaves that call; of async_spawn it is the completion.
template <class Make>
auto command_for(Make&& make) {
    using callable = std::decay_t<Make>;
    static_assert(std::is_invocable_r_v<command, callable&, int>,
                  "cohort: command_for takes a callable(int index) that returns a cohort::command");
    static_assert(detail::safe_as_temporary<Make>, "GCC 12: name the lambda first");
    return detail::command_for_work<callable>(std::forward<Make>(make));
}

/// Any callable, for start_method::fork only: worker i calls `callable(i)` on its copy of the
/// memory. What it returns is in `outcome::result<T>()`, what it throws in the join. It runs on a
/// copy of one thread of the library's, the only one in the worker: a lock that another thread
/// holds stays locked, thread_locals are fresh; start_method says more. Where that is too
/// dangerous, use function<Fn> with start_method::forkserver.
/// @param call  `T call(int index)`; kept until the group has started. One that throws when it is
///              copied throws here.
/// @throws spawn_error  from spawn: another start_method
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
