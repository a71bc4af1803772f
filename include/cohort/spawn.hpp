// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>
#include <cohort/detail/work.hpp>
#include <cohort/group.hpp>
#include <cohort/options.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/execution_context.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <exception>
#include <system_error>
#include <type_traits>
#include <utility>

namespace cohort {

namespace detail::inline v0_1 {

class group_access {
public:
    static group make(group_handle handle, group_executor where) noexcept {
        return group(std::move(handle), std::move(where));
    }
    template <class Deliver>
    static auto finish(group& g, Deliver deliver) {
        return group::start<void(std::exception_ptr, report)>(g.operand("run"), asio::use_awaitable,
                                                              std::move(deliver),
                                                              group::start_end(std::nullopt));
    }
};

/// Owns the group from its initiation on: an operation that is destroyed unfinished stops it.
class deliver_group {
public:
    deliver_group(group_handle handle, group_executor where, forked_call call) noexcept
        : handle_(std::move(handle)), group_executor_(std::move(where)), call_(std::move(call)) {}

    template <class Handler>
    void operator()(Handler&& handler, completion result) && {
        if (auto error = error_of(result)) {
            handle_ = group_handle();
            std::forward<Handler>(handler)(std::move(error), group());
        } else {
            std::forward<Handler>(handler)(
                std::exception_ptr(),
                group_access::make(std::move(handle_), std::move(group_executor_)));
        }
    }

private:
    group_handle handle_;
    group_executor group_executor_;
    forked_call call_;  // kept so that its last owner is on this side of the border
};

/// Begins the start; a plan that could not be made is delivered like any other failure.
class start_of_group {
public:
    explicit start_of_group(std::exception_ptr error) noexcept : error_(std::move(error)) {}
    void operator()(const group_ref& group, receiver to) const {
        if (error_)
            std::rethrow_exception(error_);
        start_group(group, std::move(to));
    }

private:
    std::exception_ptr error_;
};

template <class Token>
auto start_spawn(Token&& token, asio::any_io_executor executor, group_ref group, forked_call call,
                 std::exception_ptr error) {
    group_handle handle(group);
    group_executor where(std::move(executor));
    return start_operation<void(std::exception_ptr, cohort::group)>(
        std::forward<Token>(token), std::move(group), where,
        deliver_group(std::move(handle), where, std::move(call)), start_of_group(std::move(error)));
}

inline asio::awaitable<group> await_spawn(group_ref state, forked_call call) {
    auto executor = co_await asio::this_coro::executor;
    co_return co_await start_spawn(asio::use_awaitable, executor, std::move(state), std::move(call),
                                   nullptr);
}

inline asio::awaitable<report> await_run(group_ref state, forked_call call) {
    auto workers = co_await await_spawn(std::move(state), std::move(call));
    // A cancel that came when the start was over, and this coroutine not yet resumed, has reached
    // no operation, and the next await would throw while the workers live: stop them first.
    const auto cancelled = (co_await asio::this_coro::cancellation_state).cancelled();
    if (cancelled != asio::cancellation_type::none &&
        co_await asio::this_coro::throw_if_cancelled()) {
        co_await asio::this_coro::throw_if_cancelled(false);
        try {
            (void)co_await workers.stop();
        } catch (const std::system_error&) {  // cancelled once more
        }
        co_await asio::this_coro::throw_if_cancelled(true);
    }
    co_return co_await group_access::finish(workers, deliver_success());
}

}  // namespace detail::inline v0_1

/// Starts a group of workers; all or nothing, index 0 first.
///
/// environ, working directory and affinity are read in this call, on the caller's thread.
/// @param work  function<Fn>(args...), command(...), command_for(callable),
///              closure(callable)
/// @param how   options, or just the number of workers
/// @return the group, when every worker has been executed
/// @throws spawn_error  a worker could not be started; those started before are killed and reaped
/// @throws std::invalid_argument  a value that no group can have
/// @throws codec_error  an argument of the function could not be encoded
/// @par Cancellation  any type: what has been started is stopped and reaped, then
/// operation_aborted.
/// @par Thread safety  safe.
/// @par Source  torch.multiprocessing.spawn, start_processes(join=False); differs: all or
/// nothing, nothing is left of a group that could not be started.
template <class Work>
[[nodiscard]] asio::awaitable<group> spawn(Work work, options how = options()) {
    auto plan = detail::make_plan(std::move(work), std::move(how));
    auto call = plan.call;
    return detail::await_spawn(detail::create_group(std::move(plan)), std::move(call));
}

/// Starts a group and waits until every worker has ended: spawn, then group::join.
/// @param work  what spawn takes
/// @param how   options, or just the number of workers
/// @return the report of a group in which every worker ended with success
/// @throws spawn_error, std::invalid_argument, codec_error  what spawn throws
/// @throws process_raised_exception, process_exited_exception, group_stopped  what group::join
/// throws
/// @par Cancellation  that of spawn, then that of group::join.
/// @par Thread safety  safe.
/// @par Source  torch.multiprocessing.spawn(join=True)
template <class Work>
[[nodiscard]] asio::awaitable<report> run(Work work, options how = options()) {
    auto plan = detail::make_plan(std::move(work), std::move(how));
    auto call = plan.call;
    return detail::await_run(detail::create_group(std::move(plan)), std::move(call));
}

/// Starts a group with a completion token: void(std::exception_ptr, group). What spawn throws
/// arrives as the exception_ptr.
/// @param executor  the group's executor: the default of the handlers of all its operations
/// @param work      what spawn takes
/// @param how       options, or just the number of workers
/// @param token     what to do with the group; destroying its handler uncalled stops the group
/// @par Cancellation  that of spawn.
/// @par Thread safety  safe.
template <class Executor, class Work, class Token>
requires(!std::is_base_of_v<asio::execution_context, Executor>) auto async_spawn(
    const Executor& executor, Work work, options how, Token&& token) {
    detail::group_ref state;
    detail::forked_call call;
    std::exception_ptr error;
    try {
        auto plan = detail::make_plan(std::move(work), std::move(how));
        call = plan.call;
        state = detail::create_group(std::move(plan));
    } catch (...) {
        error = std::current_exception();
    }
    return detail::start_spawn(std::forward<Token>(token), asio::any_io_executor(executor),
                               std::move(state), std::move(call), std::move(error));
}

/// Starts a group with a completion token, on the executor of an execution context such as an
/// io_context. Errors arrive as they do when an executor is given.
/// @param context  has the executor that becomes the group's
/// @param work     what spawn takes
/// @param how      options, or just the number of workers
/// @param token    what to do with the group; destroying its handler uncalled stops the group
/// @par Cancellation  that of spawn.
/// @par Thread safety  safe.
template <class Context, class Work, class Token>
requires std::is_base_of_v<asio::execution_context, Context>
auto async_spawn(Context& context, Work work, options how, Token&& token) {
    return cohort::async_spawn(context.get_executor(), std::move(work), std::move(how),
                               std::forward<Token>(token));
}

}  // namespace cohort
