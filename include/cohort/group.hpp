// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/group_handle.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/operation.hpp>
#include <cohort/detail/output_operations.hpp>
#include <cohort/detail/result.hpp>
#include <cohort/errors.hpp>
#include <cohort/group_usage.hpp>
#include <cohort/outcome.hpp>
#include <cohort/output.hpp>
#include <cohort/received.hpp>

#include <chrono>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace cohort COHORT_ASIO_NAMESPACE {

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
/// With COHORT_BOOST_ASIO, asio is boost::asio: see namespace cohort.
/// The calls that wait take a completion token as their last argument: the handler's signature is
/// void(std::exception_ptr, T) for one that gives a T, and void(std::exception_ptr) for one that
/// gives nothing. Without a token a call is an asio::awaitable<T>, which throws the exception. A
/// timeout begins with the initiation, which is when a call is awaited.
/// @thread_safety distinct calls are safe from any thread; moving and destroying are not.
/// @source torch.multiprocessing.ProcessContext, formerly SpawnContext.
class [[nodiscard("cohort: a group that is dropped is stopped: keep it, or await run")]] group
    : public group_usage<group> {
public:
    /// Any Asio executor. Completions are posted to its context.
    using executor_type = asio::any_io_executor;
    /// An empty group.
    group() noexcept = default;
    /// Takes the workers over; operations that are pending on the source go on.
    group(group &&) noexcept = default;
    /// Takes the workers over; a live group that this object held is stopped in the background.
    group& operator=(group&&) noexcept = default;
    /// False for an empty group.
    bool valid() const noexcept { return static_cast<bool>(handle_); }
    /// How many workers the group was started with.
    int size() const { return detail::group_size(*handle_.state("size")); }
    /// How many have started and not ended yet.
    int alive() const { return detail::group_alive(*handle_.state("alive")); }
    /// How many wait for their start (options::at_once, options::restart).
    int waiting() const { return detail::group_waiting(*handle_.state("waiting")); }
    /// Process ids by index: for logs, never for kill() (use signal(index, signo)).
    std::vector<pid_t> pids() const { return detail::group_pids(*handle_.state("pids")); }
    /// The outcomes of those workers that have ended, by index.
    std::vector<outcome> outcomes() const {
        return detail::group_outcomes(*handle_.state("outcomes"));
    }
    /// The executor that the group was started on: the default of every operation's handler.
    executor_type get_executor() const {
        handle_.state("get_executor");
        return handle_.executor();
    }

    /// Waits until every worker has ended.
    /// @return true: all ended with success.
    /// @throws process_raised_exception, process_exited_exception, host_lost  the first failure in
    /// time; the other workers are stopped and reaped before the throw. Every call throws it again.
    /// @throws group_stopped, group_timed_out  no worker failed; it was stopped or took too long.
    /// @cancellation total: stops waiting only. partial, terminal: the ladder of stop();
    /// completes with operation_aborted when the last worker is gone, or with the real result if
    /// the group had ended before.
    /// @thread_safety safe; any number of joins at once.
    /// @source ProcessContext.join; differs: throws the same failure every time.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto join(Token && token = Token()) {
        return detail::begin_call<detail::join_result>(handle_.ask("join", detail::await_end),
                                                       std::forward<Token>(token));
    }

    /// Waits until every worker has ended or `timeout` has passed. Use this for a deadline: Asio's
    /// || with a timer hides a failure, because it waits for the first operand that succeeds.
    /// @param timeout  longest wait, on steady_clock, from when it is awaited; zero or less polls.
    /// @param token    a completion token; without one the call is awaited
    /// @return true: all ended with success. false: time is up, or it stops; the workers run on.
    /// @throws process_raised_exception, process_exited_exception, group_stopped  as join()
    /// @throws std::invalid_argument  `timeout` is not a number
    /// @cancellation total: stops waiting only. partial, terminal: the ladder of stop(), to
    /// its end, whatever the timeout; then operation_aborted, unless the group had ended before.
    /// @thread_safety safe.
    /// @source ProcessContext.join(timeout); differs: false has one meaning.
    template <class Rep, class Period, completion_token Token = detail::default_token>
    [[nodiscard]] auto join(std::chrono::duration<Rep, Period> timeout, Token && token = Token()) {
        return detail::begin_call<detail::join_result>(
            handle_.ask("join", detail::await_end, timeout), std::forward<Token>(token));
    }

    /// Waits until every worker has ended and returns their outcomes; throws no worker's failure.
    /// @return how each worker ended, also if the group was stopped.
    /// @throws std::system_error  operation_aborted: this call was cancelled.
    /// @cancellation total: stops waiting only. partial, terminal: the ladder of stop(); then
    /// operation_aborted, or the report if the group had ended before.
    /// @thread_safety safe; any number of waits at once.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto wait(Token && token = Token()) {
        return detail::begin_call<detail::report_result>(handle_.ask("wait", detail::await_end),
                                                         std::forward<Token>(token));
    }

    /// Waits for the next outcome, in the order in which the workers end. Each is reported once, to
    /// one of the calls. first_failure is not set yet: it is in the report.
    /// @return how that worker ended; or none, and ended(): every outcome has been reported.
    /// @throws std::system_error  operation_aborted: this call was cancelled.
    /// @cancellation every type: stops waiting only; the outcomes go to the other calls.
    /// @thread_safety safe; of several pending calls the oldest gets the next outcome.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto next(Token && token = Token()) {
        return detail::begin_call<detail::next_result>(handle_.ask("next", detail::await_next),
                                                       std::forward<Token>(token));
    }
    /// next(), but waits at most for `timeout` on steady_clock, from when it is awaited: then gives
    /// none, and timed_out() is true. Every type of cancellation stops waiting only.
    template <class Rep, class Period, completion_token Token = detail::default_token>
    [[nodiscard]] auto next(std::chrono::duration<Rep, Period> timeout, Token && token = Token()) {
        return detail::begin_call<detail::next_result>(
            handle_.ask("next", detail::await_next, timeout), std::forward<Token>(token));
    }

    /// Waits for the next line of a stream with lines(), or the next bytes of one with chunks().
    /// Each is given once, also after join(), in the order of its stream; those of several streams
    /// as they were read. Of `output() || timer` Asio may drop the line: use output(timeout).
    /// @return the line; or none, and ended(): all was delivered and has ended, if there was any.
    /// @throws std::system_error  operation_aborted: this call was cancelled.
    /// @cancellation every type: stops waiting only; no line is lost.
    /// @thread_safety safe; of several pending calls the oldest gets the next line.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto output(Token && token = Token()) {
        return detail::output_of<detail::line_result>(
            handle_.get(), handle_.ask("output", detail::ask_line), std::forward<Token>(token));
    }
    /// output(), but waits at most for `timeout` on steady_clock, from when it is awaited: then
    /// gives none, and timed_out() is true. Every type of cancellation stops waiting only.
    template <class Rep, class Period, completion_token Token = detail::default_token>
    [[nodiscard]] auto output(std::chrono::duration<Rep, Period> timeout,
                              Token && token = Token()) {
        return detail::output_of<detail::line_result>(
            handle_.get(), handle_.ask("output", detail::ask_line, timeout),
            std::forward<Token>(token));
    }

    /// Like output(), but gives all lines that there are, up to 256 KiB: several times faster.
    /// @return at least one line; or none: every stream has ended and all lines were delivered.
    /// @cancellation every type: stops waiting only; no line is lost.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto output_batch(Token && token = Token()) {
        return detail::begin_call<detail::lines_result>(
            handle_.ask("output_batch", detail::ask_lines), std::forward<Token>(token));
    }
    /// output_batch(), but waits at most for `timeout`. Timed and cancelled as output(timeout).
    /// @return the lines; or none: ended() or timed_out() says why.
    template <class Rep, class Period, completion_token Token = detail::default_token>
    [[nodiscard]] auto output_batch(std::chrono::duration<Rep, Period> timeout,
                                    Token && token = Token()) {
        return detail::begin_call<detail::lines_result>(
            handle_.ask("output_batch", detail::ask_lines, timeout), std::forward<Token>(token));
    }

    /// Writes to the standard input of a worker that was given feed(), after what earlier calls
    /// write. Completes when the worker's pipe has taken the whole text.
    /// @throws std::system_error  EPIPE: the worker reads no more, or close_input() was called.
    /// operation_aborted: this call was cancelled.
    /// @throws std::invalid_argument, std::logic_error  no such worker; it was not given feed()
    /// @cancellation every type: drops the rest of the text, which the pipe has not taken, and
    /// has no effect on the worker.
    /// @thread_safety safe; overlapping calls write in the order of their initiation.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto write(int index, std::string text, Token&& token = Token()) {
        return detail::begin_call<detail::no_result>(
            handle_.on_group("write", detail::input_write(index, std::move(text))),
            std::forward<Token>(token));
    }
    /// Closes the standard input of a worker after all that was written to it. Later writes fail
    /// with EPIPE. @throws std::invalid_argument, std::logic_error  no such worker; no feed()
    void close_input(int index) { detail::close_input(handle_.state("close_input"), index); }

    /// The directory of options::logs() for first attempts, `.../<run id>/attempt_0`; empty: none.
    std::filesystem::path log_directory() const {
        return detail::group_log_directory(*handle_.state("log_directory"));
    }
    /// How many pipes of ended workers are held by processes that these have started. They are read
    /// into nothing, so that nobody is killed by SIGPIPE.
    int lingering() const { return detail::group_lingering(*handle_.state("lingering")); }

    /// Runs the stop ladder and waits for its end: the stop signal and SIGCONT to every worker and
    /// its process group, SIGKILL after grace_period, the end at most kill_timeout later. A
    /// worker's failure is not thrown.
    /// @return how each worker ended.
    /// @throws std::system_error  operation_aborted: this call was cancelled.
    /// @cancellation total: stops waiting. partial, terminal: operation_aborted at the end.
    /// @thread_safety safe; a second stop keeps the first deadline.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto stop(Token && token = Token()) {
        return detail::begin_call<detail::report_result>(
            handle_.ask("stop", detail::stop_and_await), std::forward<Token>(token));
    }
    /// Begins the stop ladder, without a wait. Has no effect on an ended group.
    void request_stop() { detail::request_stop(handle_.state("request_stop")); }

    /// Sends a signal to each live worker and its process group. A worker that it ends has failed.
    /// @throws std::invalid_argument  not a signal number (1 to 64)
    void signal(int signo) { detail::send_signal(handle_.state("signal"), signo); }
    /// Sends a signal to one worker and its process group; has no effect if that worker has ended.
    /// @throws std::invalid_argument  there is no such worker; not a signal number
    void signal(int index, int signo) {
        detail::send_signal(handle_.state("signal"), index, signo);
    }

    /// The older name of join() with a completion token.
    template <class... Args>
    auto async_join(Args && ... args) {
        return join(std::forward<Args>(args)...);
    }
    /// The older name of wait() with a completion token.
    template <class... Args>
    auto async_wait(Args && ... args) {
        return wait(std::forward<Args>(args)...);
    }
    /// The older name of next() with a completion token.
    template <class... Args>
    auto async_next(Args && ... args) {
        return next(std::forward<Args>(args)...);
    }
    /// The older name of output() with a completion token.
    template <class... Args>
    auto async_output(Args && ... args) {
        return output(std::forward<Args>(args)...);
    }
    /// The older name of output_batch() with a completion token.
    template <class... Args>
    auto async_output_batch(Args && ... args) {
        return output_batch(std::forward<Args>(args)...);
    }
    /// The older name of write() with a completion token.
    template <class... Args>
    auto async_write(Args && ... args) {
        return write(std::forward<Args>(args)...);
    }
    /// The older name of stop() with a completion token.
    template <class... Args>
    auto async_stop(Args && ... args) {
        return stop(std::forward<Args>(args)...);
    }

private:
    friend class detail::group_access;
    friend class group_usage<group>;

    explicit group(detail::group_handle handle) noexcept : handle_(std::move(handle)) {}

    detail::group_handle handle_;
};

}  // namespace COHORT_ASIO_NAMESPACE
