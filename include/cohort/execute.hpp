// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/command.hpp>
#include <cohort/detail/asio.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/execution.hpp>
#include <cohort/outcome.hpp>

#include <chrono>
#include <type_traits>
#include <utility>

namespace cohort COHORT_ASIO_NAMESPACE {

/// Executes one command and gives its outcome: exit code or signal, cause, and what it wrote. Its
/// standard output and standard error are captured (outcome::out and outcome::err), each with the
/// limits of capture(), unless the command says where they go. It inherits RANK, WORLD_SIZE and the
/// like from this program unchanged: only the workers of a group have a rank of their own.
///
///     auto one = co_await cohort::execute(cohort::command("git", "status"), 2s);
///     if (one.success()) fmt::print("{}", one.out.text());
/// @param program  the command
/// @return its outcome, whatever its exit code is
/// @throws spawn_error, which is a std::system_error: it could not be started
/// @throws std::invalid_argument  it has feed(), lines() or chunks(), which need a group
/// @throws sharing_error  this process has closed the end of a queue that was shared with it
/// @cancellation total: completes with operation_aborted at once, and the command is stopped in the
/// background. partial, terminal: the ladder of group::stop, then operation_aborted, or the outcome
/// if it had ended before.
/// @thread_safety safe.
/// @source subprocess.run (Python); differs: never blocks, limits what it captures.
template <class Result = detail::execution>
[[nodiscard]] asio::awaitable<outcome> execute(command program) {
    return detail::await_execution<Result>(detail::unstarted_execution(std::move(program)));
}

/// execute(program) with a time limit, which counts from the initiation. Then the command is
/// stopped: SIGTERM, and SIGKILL after 30 s or the time limit, whichever is less. Its outcome has
/// cause::timed_out.
/// @param program  the command
/// @param timeout  zero or more
/// @throws std::invalid_argument  `timeout` is negative or not a number
/// @throws spawn_error  ETIMEDOUT: the time was up before the command had started
template <class Rep, class Period>
[[nodiscard]] asio::awaitable<outcome> execute(command program,
                                               std::chrono::duration<Rep, Period> timeout) {
    return detail::await_execution<detail::execution>(detail::unstarted_execution(
        std::move(program), detail::to_option_duration("execute", timeout)));
}

/// execute(program) with a completion token: void(std::exception_ptr, outcome). The exception_ptr
/// is what execute throws.
/// @param where    an executor, or an execution context such as an io_context: the default of the
///                 handler's executor
/// @param program  the command
/// @param token    the completion token; destroying its handler uncalled stops the command
template <class Where, class Token>
auto async_execute(Where&& where, command program, Token&& token) {
    return detail::async_execution(
        detail::executor_at(where), [&] { return detail::unstarted_execution(std::move(program)); },
        std::forward<Token>(token));
}

/// execute(program, timeout) with a completion token: void(std::exception_ptr, outcome).
/// @param where    an executor, or an execution context such as an io_context: the default of the
///                 handler's executor
/// @param program  the command
/// @param timeout  zero or more
/// @param token    the completion token; destroying its handler uncalled stops the command
template <class Where, class Rep, class Period, class Token>
auto async_execute(Where&& where, command program, std::chrono::duration<Rep, Period> timeout,
                   Token&& token) {
    return detail::async_execution(
        detail::executor_at(where),
        [&] {
            return detail::unstarted_execution(std::move(program),
                                               detail::to_option_duration("execute", timeout));
        },
        std::forward<Token>(token));
}

}  // namespace cohort COHORT_ASIO_NAMESPACE
