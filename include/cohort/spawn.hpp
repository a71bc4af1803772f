// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/spawn_operation.hpp>
#include <cohort/detail/work.hpp>
#include <cohort/group.hpp>
#include <cohort/options.hpp>

#include <type_traits>
#include <utility>

namespace cohort COHORT_ASIO_NAMESPACE {

/// Starts a group of workers; all or nothing, index 0 first. With options::at_once that holds for
/// the first of them.
///
/// The call reads environ, working directory, affinity, priorities and rights, on the caller's
/// thread. A thread that has confined itself after the first start of a group is refused: see
/// "confinement" at spawn_error::stage().
///
/// In a copy of this process that fork(2) has made, the library starts afresh, with threads of its
/// own. The threads of Asio's system_context are not in the copy. So await the group on an
/// execution context that the copy runs itself; an operation with asio::use_future or on
/// asio::system_executor never completes there.
/// @param work   function<Fn>(args...), command(...), command_for(callable),
///               closure(callable)
/// @param how    options, or just the number of workers
/// @param token  a completion token; without one the call is awaited
/// @return the group, once the start of every worker has succeeded
/// @throws spawn_error  a worker could not be started; those started before are killed and reaped
/// @throws group_timed_out  options::time_limit was reached before all had started
/// @throws process_raised_exception, process_exited_exception  it was reached, and one had failed
/// @throws host_lost  a host of options::on is lost, or is lost during the start; the workers that
/// other hosts have started are killed and reaped
/// @throws std::invalid_argument  an option has a value that no group can have
/// @throws std::logic_error  the work is a function, which start_method::spawn and forkserver run
/// in another execution of this program, but this program has not called worker_main
/// @throws codec_error  an argument of the function could not be encoded
/// @throws sharing_error  EBADF: this process does not have the end of a queue any more that is an
/// argument, or was given to closure_work::keep or where_it_runs::share
/// @cancellation any type: started workers are stopped and reaped, then operation_aborted.
/// @thread_safety safe.
/// @source torch.multiprocessing.spawn, start_processes(join=False); differs: all or nothing,
/// a failed start leaves nothing behind.
template <class Work, completion_token Token = detail::default_token>
requires(!detail::runs_completions<Work>)
    [[nodiscard]] auto spawn(Work work, options how = options(), Token&& token = Token()) {
    return detail::start_with<detail::started_group>(
        detail::unstarted_of(std::move(work), std::move(how)), std::forward<Token>(token));
}

/// spawn(), on an executor or an execution context that is named: the default of the handlers of
/// all the group's calls.
/// @param where  an executor, or an execution context such as an io_context
/// @param work   what the other spawn takes
/// @param how    options, or just the number of workers
/// @param token  the completion token; destroying its handler uncalled stops the group
template <detail::runs_completions Where, class Work,
          completion_token Token = detail::default_token>
[[nodiscard]] auto spawn(Where&& where, Work work, options how = options(),
                         Token&& token = Token()) {
    return detail::start_on<detail::started_group>(
        detail::executor_at(where), detail::unstarted_of(std::move(work), std::move(how)),
        std::forward<Token>(token));
}

/// Starts a group and waits until every worker has ended: spawn, then group::join.
/// @param work   what spawn takes
/// @param how    options, or just the number of workers
/// @param token  a completion token; without one the call is awaited. With one, a callable that
///               keeps ends of queues is destroyed by a thread of the library, when all workers
///               have started.
/// @return the report of a group in which every worker ended with success
/// @throws spawn_error, std::invalid_argument, std::logic_error, codec_error, sharing_error  the
/// group could not be started, for the reasons that spawn names
/// @throws std::invalid_argument  a worker has feed(), which needs a group to be written to
/// @throws process_raised_exception, process_exited_exception, host_lost  the first failure in
/// time; the other workers are stopped and reaped before the throw
/// @throws group_timed_out  no worker failed, and options::time_limit was reached
/// @throws group_stopped  no worker failed, and the group was stopped
/// @cancellation any type stops the group. During the start, started workers are stopped and
/// reaped, then operation_aborted. Later total completes with operation_aborted at once, and the
/// group is stopped in the background; partial, terminal: the ladder of group::stop, then
/// operation_aborted, or the real result if the group had ended before.
/// @thread_safety safe.
/// @source torch.multiprocessing.spawn(join=True)
template <class Work, completion_token Token = detail::default_token>
requires(!detail::runs_completions<Work>)
    [[nodiscard]] auto run(Work work, options how = options(), Token&& token = Token()) {
    auto from = detail::unstarted_of(std::move(work), std::move(how));
    if constexpr (detail::is_awaited<Token>)
        return detail::await_run(std::move(from));
    else
        return detail::start_with<detail::finished_group>(std::move(from),
                                                          std::forward<Token>(token));
}

/// run(), on an executor or an execution context that is named: the default of the handler's
/// executor.
/// @param where  an executor, or an execution context such as an io_context
/// @param work   what spawn takes
/// @param how    options, or just the number of workers
/// @param token  the completion token; destroying its handler uncalled stops the group
template <detail::runs_completions Where, class Work,
          completion_token Token = detail::default_token>
[[nodiscard]] auto run(Where&& where, Work work, options how = options(), Token&& token = Token()) {
    return detail::start_on<detail::finished_group>(
        detail::executor_at(where), detail::unstarted_of(std::move(work), std::move(how)),
        std::forward<Token>(token));
}

/// The older name of spawn() with an executor and a completion token.
template <class... Args>
auto async_spawn(Args&&... args) {
    return cohort::spawn(std::forward<Args>(args)...);
}

}  // namespace COHORT_ASIO_NAMESPACE
