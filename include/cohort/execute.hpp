// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/command.hpp>
#include <cohort/detail/asio.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/execution.hpp>
#include <cohort/outcome.hpp>

#include <chrono>
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
/// @param token    a completion token; without one the call is awaited
/// @return its outcome, whatever its exit code is
/// @throws spawn_error, which is a std::system_error: it could not be started
/// @throws std::invalid_argument  it has feed(), lines() or chunks(), which need a group
/// @throws sharing_error  this process has closed the end of a queue that was shared with it
/// @cancellation total: completes with operation_aborted at once, and the command is stopped in the
/// background. partial, terminal: the ladder of group::stop, then operation_aborted, or the outcome
/// if it had ended before.
/// @thread_safety safe.
/// @source subprocess.run (Python); differs: never blocks, limits what it captures.
template <completion_token Token = detail::default_token>
[[nodiscard]] auto execute(command program, Token&& token = Token()) {
    return detail::start_with<detail::execution>(detail::unstarted_execution(std::move(program)),
                                                 std::forward<Token>(token));
}

/// execute(program) with a time limit, which counts from the initiation. Then the command is
/// stopped: SIGTERM, and SIGKILL after 30 s or the time limit, whichever is less. Its outcome has
/// cause::timed_out.
/// @param program  the command
/// @param timeout  zero or more
/// @param token    a completion token; without one the call is awaited
/// @throws std::invalid_argument  `timeout` is negative or not a number
/// @throws spawn_error  ETIMEDOUT: the time was up before the command had started
template <class Rep, class Period, completion_token Token = detail::default_token>
[[nodiscard]] auto execute(command program, std::chrono::duration<Rep, Period> timeout,
                           Token&& token = Token()) {
    return detail::start_with<detail::execution>(
        detail::unstarted_execution(std::move(program), timeout), std::forward<Token>(token));
}

/// execute(program), on an executor or an execution context that is named: the default of the
/// handler's executor.
/// @param where    an executor, or an execution context such as an io_context
/// @param program  the command
/// @param token    a completion token; destroying its handler uncalled stops the command
template <detail::runs_completions Where, completion_token Token = detail::default_token>
[[nodiscard]] auto execute(Where&& where, command program, Token&& token = Token()) {
    return detail::start_on<detail::execution>(detail::executor_at(where),
                                               detail::unstarted_execution(std::move(program)),
                                               std::forward<Token>(token));
}
/// execute(program, timeout), on an executor or an execution context that is named.
template <detail::runs_completions Where, class Rep, class Period,
          completion_token Token = detail::default_token>
[[nodiscard]] auto execute(Where&& where, command program,
                           std::chrono::duration<Rep, Period> timeout, Token&& token = Token()) {
    return detail::start_on<detail::execution>(
        detail::executor_at(where), detail::unstarted_execution(std::move(program), timeout),
        std::forward<Token>(token));
}

/// The older name of execute() with an executor and a completion token.
template <class... Args>
auto async_execute(Args&&... args) {
    return cohort::execute(std::forward<Args>(args)...);
}

}  // namespace COHORT_ASIO_NAMESPACE
