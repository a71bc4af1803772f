// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/executors.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/operation.hpp>

#include <exception>
#include <type_traits>
#include <utility>

// How groups, pools and hosts are started. Each has an executor: the one that is named, else that
// of the handler.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// @param make  makes it; what it throws is the result of the start
template <class Unstarted, class Make>
Unstarted made_or_error(Make make) {
    try {
        return Unstarted(make());
    } catch (...) {
        return Unstarted(std::current_exception());
    }
}

/// A place where completions run: an executor, of either of Asio's models, or an execution context.
/// It asks for members only, because Asio's traits would find our own execute().
template <class Where>
concept runs_completions = std::is_base_of_v<asio::execution_context, std::remove_cvref_t<Where>> ||
    requires(const Where& where) {
    where.context();
} || requires(const Where& where, void (*work)()) {
    where.execute(work);
};

template <runs_completions Where>
asio::any_io_executor executor_at(Where& where) {
    if constexpr (std::is_base_of_v<asio::execution_context, std::remove_cv_t<Where>>)
        return where.get_executor();
    else
        return where;
}

/// The executor of a handler, for what outlives the handler. Where it can't be kept for that, as
/// that of asio::use_future, all runs on Asio's own threads.
template <class Handler>
asio::any_io_executor lasting_executor_of(const Handler& handler) {
    const auto executor = asio::get_associated_executor(handler);
    if constexpr (std::is_constructible_v<asio::any_io_executor, decltype(executor)>)
        return asio::any_io_executor(executor);
    else
        return erased<asio::system_executor>();
}

/// Starts on the executor of the handler. Can't be copied, because it starts once: one that Asio
/// has deferred is moved into its initiation.
/// @tparam Result  made of `From` and the executor; its begin() makes the call
template <class Result, class From>
class start_at_handler {
public:
    explicit start_at_handler(From from) : from_(std::move(from)) {}
    start_at_handler(start_at_handler&&) = default;
    start_at_handler& operator=(start_at_handler&&) = delete;
    static constexpr bool cancels_on_any_thread = true;

    template <class Handler>
    void operator()(Handler&& handler) {
        const group_executor where(lasting_executor_of(handler));
        Result result(std::move(from_), where);
        call on = result.begin(where);
        initiation<deliver_result<Result>>(std::move(on),
                                           deliver_result<Result>(std::move(result)))(
            std::forward<Handler>(handler));
    }

private:
    From from_;
};

// Templates, for the reason given in group_operations.hpp. GCC takes Asio's own deletion of a
// coroutine's frame for a wrong one.
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

template <class Result, class From>
asio::awaitable<typename Result::type> await_start(From from) {
    const group_executor where(asio::any_io_executor(co_await asio::this_coro::executor));
    Result result(std::move(from), where);
    call on = result.begin(where);
    completion done = co_await await_completion(std::move(on));
    if (auto error = result.error(done))
        std::rethrow_exception(std::move(error));
    co_return result.value(done);
}

#pragma GCC diagnostic pop

/// Starts what `From` describes, on the executor of the handler.
template <class Result, class From, class Token>
auto start_with(From from, Token&& token) {
    if constexpr (is_awaited<Token>)
        return await_start<Result>(std::move(from));
    else
        return asio::async_initiate<Token, void(std::exception_ptr, typename Result::type)>(
            start_at_handler<Result, From>(std::move(from)), token);
}

/// The same on an executor that is named.
template <class Result, class From, class Token>
auto start_on(const asio::any_io_executor& executor, From from, Token&& token) {
    const group_executor where(executor);
    Result result(std::move(from), where);
    call on = result.begin(where);
    return begin_call<Result>(std::move(on), std::forward<Token>(token), std::move(result));
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
