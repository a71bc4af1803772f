// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/call_limits.hpp>
#include <cohort/detail/asio.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/pool_handle.hpp>
#include <cohort/detail/pool_operations.hpp>
#include <cohort/detail/pool_start.hpp>
#include <cohort/pool_errors.hpp>
#include <cohort/pool_options.hpp>
#include <cohort/pool_stats.hpp>
#include <cohort/task.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort COHORT_ASIO_NAMESPACE {

/// A pool of warm workers for single calls: started by start_pool, `co_await pool.submit(task<f>(
/// x))` gives what `f(x)` returns in a worker. Move-only.
///
/// A task that throws fails its call, and its worker lives on. A worker that dies fails the call
/// that it runs, and is replaced; nobody else notices. No call is made twice: it fails as soon as
/// the worker that has it is lost. Calls are made in their order; of the idle workers the one that
/// was used last gets the next call.
///
/// The pool grows up to its size when a call waits and no worker is idle, and shrinks to
/// pool_options::at_least. Dropping the pool ends it in the background: all calls complete with
/// operation_aborted, and the workers are stopped; the destructor never blocks. When the program
/// ends, however it ends, no worker stays.
///
/// A default-constructed or moved-from pool is *empty*: every call but valid(), assignment and
/// destruction throws std::logic_error (asynchronous ones through their completion). An idle pool
/// is no work for its execution context: io_context::run() returns.
///
/// The calls that wait take a completion token as their last argument, as those of a group. R of a
/// task must be default-constructible where there is a token; if that throws, the call itself does.
/// @thread_safety distinct calls are safe from any thread; moving and destroying are not.
/// @source concurrent.futures.ProcessPoolExecutor (Python); differs: a worker's death fails one
/// call; deadlines; workers are renewed under load.
class [[nodiscard("cohort: a pool that is dropped is stopped: keep it")]] pool {
public:
    /// Any Asio executor. Completions are posted to its context.
    using executor_type = asio::any_io_executor;

    /// An empty pool.
    pool() noexcept = default;
    /// Takes the workers over; calls that are pending on the source go on.
    pool(pool &&) noexcept = default;
    /// Takes the workers over; a pool that this object held is dropped.
    pool& operator=(pool&&) noexcept = default;

    /// False for an empty pool.
    bool valid() const noexcept { return static_cast<bool>(handle_); }
    /// The executor that the pool was started on: the default of every operation's handler.
    executor_type get_executor() const {
        handle_.state("get_executor");
        return handle_.executor();
    }
    /// What the pool has and had, now. A call is counted before it completes.
    pool_stats stats() const { return detail::stats_of(*handle_.state("stats")); }
    /// The live workers, by their slots.
    std::vector<pool_worker> workers() const {
        return detail::workers_of(*handle_.state("workers"));
    }

    /// Makes a call in a worker, and waits for its end.
    /// @param task   task<Fn>(args...); its arguments are encoded by this call
    /// @param token  a completion token; without one the call is awaited
    /// @return what Fn returns; nothing if that is void
    /// @throws process_raised_exception  the task has thrown. error_index() is its worker's slot.
    /// outcomes() is empty, because the worker lives on. std::rethrow_if_nested throws the
    /// exception in its own type, if that is known here.
    /// @throws process_exited_exception  its worker died, with exit(0) too: outcomes() has that
    /// worker only. process_raised_exception, if an exception ended the worker.
    /// @throws task_timeout, queue_timeout  it ran or waited for longer than the pool's options say
    /// @throws pool_broken   no worker can be made ready
    /// @throws result_error  the result can't be decoded, or is of another type
    /// @throws codec_error, sharing_error  an argument can't be encoded, or can't be sent
    /// @throws std::system_error  operation_aborted: the call was cancelled, or the pool takes no
    /// calls any more
    /// @cancellation A call that waits: any type takes it out, and no worker is touched. A call
    /// that runs: total drops its result, and its worker goes on; partial, terminal: its worker is
    /// stopped, and the call completes with operation_aborted when that is gone.
    /// @thread_safety safe; any number of calls at once.
    template <auto Fn, completion_token Token = detail::default_token>
    requires(!std::is_same_v<std::remove_cvref_t<Token>, call_limits>) [[nodiscard]] auto submit(
        const detail::task_call<Fn>& task, Token&& token = Token()) {
        return submit(task, call_limits(), std::forward<Token>(token));
    }
    /// submit() with a limit on the time that the task runs, from its dispatch to a worker: then
    /// the worker is stopped and replaced, and the call fails with task_timeout.
    /// @throws std::invalid_argument  by this call itself: `deadline` is not above 0, or not a
    /// number
    template <auto Fn, class Rep, class Period, completion_token Token = detail::default_token>
    [[nodiscard]] auto submit(const detail::task_call<Fn>& task,
                              std::chrono::duration<Rep, Period> deadline,
                              Token&& token = Token()) {
        return submit(task, call_limits().run(deadline), std::forward<Token>(token));
    }
    /// submit() with limits on the times that it waits and runs.
    template <auto Fn, completion_token Token = detail::default_token>
    [[nodiscard]] auto submit(const detail::task_call<Fn>& task, const call_limits& limits,
                              Token&& token = Token()) {
        return detail::begin_call<detail::task_result<typename detail::task_call<Fn>::result>>(
            handle_.submit(task, limits), std::forward<Token>(token));
    }
    /// Submits a call unless the queue is full (pool_options::queue) or the pool takes no calls.
    /// That is decided here. Otherwise like async_submit().
    /// @param task     task<Fn>(args...)
    /// @param handler  void(std::exception_ptr, R), or void(std::exception_ptr)
    /// @return false: the call is not made, and the handler is never called
    /// @throws codec_error, sharing_error  an argument can't be encoded
    template <auto Fn, class Handler>
    bool try_submit(const detail::task_call<Fn>& task, Handler&& handler) {
        auto call = handle_.submit_if_room(task);
        if (call)
            detail::begin_call<detail::task_result<typename detail::task_call<Fn>::result>>(
                std::move(*call), std::forward<Handler>(handler));
        return call.has_value();
    }

    /// Replaces every worker that is live now, one after the other, each when its successor is
    /// ready (pool_options::overlap). No call is lost. Completes when all of them are gone.
    /// @throws pool_broken  pool_options::start_attempts successors in a row have died before they
    /// were ready; the old workers that are left serve on
    /// @throws std::system_error  operation_aborted: the call was cancelled, or the pool is
    /// draining, stopped or dropped
    /// @cancellation any type: stops waiting only.
    /// @thread_safety safe.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto recycle(Token && token = Token()) {
        return detail::begin_call<detail::wish_result>(
            handle_.wish("recycle", detail::pool_wish::recycle), std::forward<Token>(token));
    }

    /// Gives the pool another size. Completes when the workers beyond it are gone, each of which
    /// ends its task first. options_for() and the filters of console() are called again.
    /// @param n      the number of workers at most; pool_options::at_least is lowered to it
    /// @param token  a completion token; without one the call is awaited
    /// @throws std::invalid_argument  `n` is less than 1
    /// @throws std::system_error  operation_aborted: the call was cancelled, or the pool is
    /// draining, stopped or dropped
    /// @cancellation any type: stops waiting only.
    /// @thread_safety safe, if the callables of the options are.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto resize(int n, Token&& token = Token()) {
        return detail::begin_call<detail::wish_result>(handle_.resize(n),
                                                       std::forward<Token>(token));
    }

    /// Takes no calls any more; those that wait and run end first, then the workers. Later calls
    /// fail with operation_aborted.
    /// @throws std::system_error  operation_aborted: the call was cancelled
    /// @cancellation any type: stops waiting only; the pool goes on draining.
    /// @thread_safety safe.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto drain(Token && token = Token()) {
        return detail::begin_call<detail::wish_result>(
            handle_.wish("drain", detail::pool_wish::drain), std::forward<Token>(token));
    }
    /// drain(), but waits at most for `timeout` on steady_clock, from when it is awaited.
    /// @return false: the time is up, and the pool goes on draining
    template <class Rep, class Period, completion_token Token = detail::default_token>
    [[nodiscard]] auto drain(std::chrono::duration<Rep, Period> timeout, Token && token = Token()) {
        return detail::begin_call<detail::drain_result>(
            handle_.wish("drain", detail::pool_wish::drain, detail::to_steady(timeout)),
            std::forward<Token>(token));
    }

    /// Takes no calls any more, and ends those that wait with operation_aborted. The tasks that run
    /// may end within pool_options::drain_period; then their workers are stopped, and they get
    /// operation_aborted too. Completes when the last worker is gone. A second stop waits for the
    /// first.
    /// @throws std::system_error  operation_aborted: the call was cancelled
    /// @cancellation any type: stops waiting only; the pool goes on stopping.
    /// @thread_safety safe.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto stop(Token && token = Token()) {
        return detail::begin_call<detail::wish_result>(
            handle_.wish("stop", detail::pool_wish::stop), std::forward<Token>(token));
    }

    /// The older name of submit() with a completion token.
    template <class... Args>
    auto async_submit(Args && ... args) {
        return submit(std::forward<Args>(args)...);
    }
    /// The older name of recycle() with a completion token.
    template <class... Args>
    auto async_recycle(Args && ... args) {
        return recycle(std::forward<Args>(args)...);
    }
    /// The older name of resize() with a completion token.
    template <class... Args>
    auto async_resize(Args && ... args) {
        return resize(std::forward<Args>(args)...);
    }
    /// The older name of drain() with a completion token.
    template <class... Args>
    auto async_drain(Args && ... args) {
        return drain(std::forward<Args>(args)...);
    }
    /// The older name of stop() with a completion token.
    template <class... Args>
    auto async_stop(Args && ... args) {
        return stop(std::forward<Args>(args)...);
    }

private:
    friend class detail::started_pool<pool>;

    explicit pool(detail::pool_handle handle) noexcept : handle_(std::move(handle)) {}

    detail::pool_handle handle_;
};

/// Starts a pool of workers. Ends when pool_options::at_least of them are ready.
///
/// The call reads environ, working directory, umask, affinity, priorities and rights, and encodes
/// the initializer, on the caller's thread. Workers that start later get the same.
/// @param how    pool_options, or just the number of workers at most
/// @param token  a completion token; without one the call is awaited
/// @throws pool_broken  pool_options::start_attempts workers in a row have died before they were
/// ready; the failure of the last one is nested: a spawn_error if it could not be started
/// @throws spawn_error, std::logic_error  this process must not start workers, as spawn says
/// @throws std::invalid_argument  an option has a value that no pool can have
/// @throws codec_error, sharing_error  the initializer's arguments can't be encoded
/// @cancellation any type: started workers are stopped and reaped, then operation_aborted.
/// @thread_safety safe.
/// @source concurrent.futures.ProcessPoolExecutor (Python)
template <completion_token Token = detail::default_token>
[[nodiscard]] auto start_pool(pool_options how, Token&& token = Token()) {
    return detail::start_with<detail::started_pool<pool>>(
        detail::unstarted_or_error(std::move(how)), std::forward<Token>(token));
}

/// start_pool(), on an executor or an execution context that is named: the default of the handlers
/// of all the pool's calls.
/// @param where  an executor, or an execution context such as an io_context
/// @param how    pool_options, or just the number of workers at most
/// @param token  the completion token; destroying its handler uncalled ends the pool
template <detail::runs_completions Where, completion_token Token = detail::default_token>
[[nodiscard]] auto start_pool(Where&& where, pool_options how, Token&& token = Token()) {
    return detail::start_on<detail::started_pool<pool>>(detail::executor_at(where),
                                                        detail::unstarted_or_error(std::move(how)),
                                                        std::forward<Token>(token));
}

/// The older name of start_pool() with an executor and a completion token.
template <class... Args>
auto async_start_pool(Args&&... args) {
    return cohort::start_pool(std::forward<Args>(args)...);
}

}  // namespace COHORT_ASIO_NAMESPACE
