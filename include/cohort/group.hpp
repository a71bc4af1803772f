// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/group_handle.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/operation.hpp>
#include <cohort/detail/result.hpp>
#include <cohort/errors.hpp>
#include <cohort/outcome.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <chrono>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

namespace cohort {

namespace detail::inline v0_1 {
class group_access;
}

/// A group of worker processes: started by spawn, awaited as one thing. Move-only.
///
/// Owns its workers: dropping a live group stops them in the background (by the ladder of stop())
/// and reaps them; the destructor never blocks. The group may be moved or dropped while operations
/// on it are pending, because each keeps the shared state alive. The group reacts to a worker's
/// failure at once, even if no join is pending.
///
/// A default-constructed or moved-from group is *empty*: every call but valid(), assignment and
/// destruction throws std::logic_error (asynchronous ones through their completion, which comes on
/// asio::system_executor, a thread of Asio's own, if the handler has no executor). A group of no
/// workers (nprocs 0) is not empty: it has ended with success, and completes on its own executor.
///
/// An executor must queue what is posted to it, because one thread of the library posts all
/// completions. A post() that blocks there delays the deadlines of all groups; one that calls the
/// handler there ends the program by std::terminate.
///
/// join, wait, next and stop are templates, so that a program compiles only those that it calls.
/// Their template parameter is always the default.
/// @par Thread safety  distinct calls are safe from any thread; moving and destroying are not.
/// @par Source  torch.multiprocessing.ProcessContext, formerly SpawnContext.
class group {
public:
    /// Any Asio executor. Completions are posted to its context.
    using executor_type = asio::any_io_executor;

    /// An empty group.
    group() noexcept = default;
    /// Takes the workers over; operations that are pending on the source go on.
    group(group&&) noexcept = default;
    /// Takes the workers over; a live group that this object held is stopped in the background.
    group& operator=(group&&) noexcept = default;

    /// False for an empty group.
    bool valid() const noexcept { return static_cast<bool>(handle_); }
    /// How many workers the group was started with.
    int size() const { return detail::group_size(*state("size")); }
    /// How many have not ended yet.
    int alive() const { return detail::group_alive(*state("alive")); }
    /// Process ids by index: for logs, never for kill() (use signal()).
    std::vector<pid_t> pids() const { return detail::group_pids(*state("pids")); }
    /// The outcomes of those workers that have ended, by index.
    std::vector<outcome> outcomes() const { return detail::group_outcomes(*state("outcomes")); }
    /// The executor that the group was started on: the default of every operation's handler.
    executor_type get_executor() const {
        state("get_executor");
        return group_executor_.executor();
    }

    /// Waits until every worker has ended.
    /// @return true: all ended with success.
    /// @throws process_raised_exception, process_exited_exception  the first failure in time; the
    /// other workers are stopped and reaped before the throw. Every call throws it again.
    /// @throws group_stopped  the group was stopped and no worker failed.
    /// @par Cancellation  total: stops waiting only. partial, terminal: the ladder of stop();
    /// completes with operation_aborted when the last worker is gone, or with the real result if
    /// the group had ended before.
    /// @par Thread safety  safe; any number of joins at once.
    /// @par Source  ProcessContext.join; differs: throws the same failure every time.
    template <class Result = detail::join_result>
    [[nodiscard]] asio::awaitable<bool> join() {
        return detail::await_result<Result>(ask(kind::end, "join"));
    }

    /// Waits until every worker has ended or `timeout` has passed.
    /// @param timeout  longest wait, on steady_clock, from the moment it is awaited; zero or less
    /// polls.
    /// @return true: all ended with success. false: time is up (also while the group is being
    /// stopped); the workers run on.
    /// @throws process_raised_exception, process_exited_exception, group_stopped  what join()
    /// throws
    /// @throws std::invalid_argument  `timeout` is not a number
    /// @par Cancellation  as join(); the timeout no longer applies once the ladder begins.
    /// @par Thread safety  safe.
    /// @par Source  ProcessContext.join(timeout); differs: false has one meaning.
    template <class Rep, class Period>
    [[nodiscard]] asio::awaitable<bool> join(std::chrono::duration<Rep, Period> timeout) {
        return detail::await_result<detail::join_result>(
            ask(kind::end, "join", detail::to_steady(timeout)));
    }

    /// join() with a completion token: void(std::exception_ptr, bool). The exception_ptr is what
    /// join() throws; cancellation and thread safety are those of join().
    template <class Token>
    auto async_join(Token&& token) {
        return detail::async_result_of<detail::join_result>(ask(kind::end, "async_join"),
                                                            std::forward<Token>(token));
    }

    /// join(timeout) with a completion token: void(std::exception_ptr, bool). The timeout begins
    /// with the initiation; errors, cancellation and thread safety are those of join().
    template <class Rep, class Period, class Token>
    auto async_join(std::chrono::duration<Rep, Period> timeout, Token&& token) {
        return detail::async_result_of<detail::join_result>(
            ask(kind::end, "async_join", detail::to_steady(timeout)), std::forward<Token>(token));
    }

    /// Waits until every worker has ended and returns their ends as data: a worker's failure is not
    /// thrown.
    /// @return how each worker ended, also if the group was stopped.
    /// @throws std::system_error  operation_aborted: this call was cancelled.
    /// @par Cancellation  as join().
    /// @par Thread safety  safe; any number of waits at once.
    template <class Result = detail::report_result>
    [[nodiscard]] asio::awaitable<report> wait() {
        return detail::await_result<Result>(ask(kind::end, "wait"));
    }
    /// wait() with a completion token: void(std::exception_ptr, report). Errors, cancellation and
    /// thread safety are those of wait().
    template <class Token>
    auto async_wait(Token&& token) {
        return detail::async_result_of<detail::report_result>(ask(kind::end, "async_wait"),
                                                              std::forward<Token>(token));
    }

    /// Waits for the next worker that ends, in the order of the ends. Each end is reported once, to
    /// one of the calls. first_failure is not set yet: see report.
    /// @return how that worker ended; empty: every end has been reported.
    /// @throws std::system_error  operation_aborted: this call was cancelled.
    /// @par Cancellation  as join(); the ends go to the other calls.
    /// @par Thread safety  safe; of several pending calls the oldest gets the next end.
    template <class Result = detail::next_result>
    [[nodiscard]] asio::awaitable<std::optional<outcome>> next() {
        return detail::await_result<Result>(ask(kind::next, "next"));
    }
    /// next() with a completion token: void(std::exception_ptr, std::optional<outcome>). Errors,
    /// cancellation and thread safety are those of next().
    template <class Token>
    auto async_next(Token&& token) {
        return detail::async_result_of<detail::next_result>(ask(kind::next, "async_next"),
                                                            std::forward<Token>(token));
    }

    /// Runs the stop ladder and waits for its end: the stop signal and SIGCONT to every worker and
    /// its process group, SIGKILL after grace_period, the end at most kill_timeout later. A
    /// worker's failure is not thrown.
    /// @return how each worker ended.
    /// @throws std::system_error  operation_aborted: this call was cancelled.
    /// @par Cancellation  total: stops waiting; the ladder goes on. partial, terminal: as join().
    /// @par Thread safety  safe; a second stop keeps the first deadline.
    template <class Result = detail::report_result>
    [[nodiscard]] asio::awaitable<report> stop() {
        return detail::await_result<Result>(ask(kind::stop, "stop"));
    }
    /// stop() with a completion token: void(std::exception_ptr, report). Errors, cancellation and
    /// thread safety are those of stop().
    template <class Token>
    auto async_stop(Token&& token) {
        return detail::async_result_of<detail::report_result>(ask(kind::stop, "async_stop"),
                                                              std::forward<Token>(token));
    }
    /// Begins the stop ladder and does not wait. Works after any cancellation; on an ended group it
    /// has no effect.
    void request_stop() { detail::request_stop(state("request_stop")); }

    /// Sends a signal to each live worker and its process group. A worker that dies of it counts as
    /// failed.
    /// @throws std::invalid_argument  not a signal number (1 to 64)
    void signal(int signo) { detail::send_signal(state("signal"), signo); }

private:
    friend class detail::group_access;
    using kind = detail::request::kind;

    group(detail::group_handle handle, detail::group_executor where) noexcept
        : handle_(std::move(handle)), group_executor_(std::move(where)) {}

    const detail::group_ref& state(const char* call) const {
        if (!handle_)
            detail::throw_empty_group(call);
        return handle_.get();
    }
    /// Does not throw for an empty group, because the operation completes with that error.
    template <class... Timeout>
    detail::group_request ask(kind what, const char* call, Timeout... timeout) const {
        return detail::group_request(
            detail::group_job(handle_.get(), detail::request(what, call, timeout...)),
            handle_ ? group_executor_ : detail::group_executor());
    }

    detail::group_handle handle_;
    detail::group_executor group_executor_;
};

}  // namespace cohort
