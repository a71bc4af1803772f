// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/operation.hpp>
#include <cohort/outcome.hpp>
#include <cohort/received.hpp>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

// Turns the completion of each operation into the value or the exception that the user gets. Runs
// on the handler's executor.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// The exception of a completion that is aborted or failed. Null for done and time_up.
inline std::exception_ptr error_of(const completion& done) {
    if (done.what == completion::kind::failed)
        return done.not_started ? failure_of(*done.not_started)
               : done.end       ? failure_of(done.end)
                                : done.error;
    if (done.what == completion::kind::aborted)
        return std::make_exception_ptr(system_error(asio::error::operation_aborted));
    return nullptr;
}

/// Like error_of(), but also gives the failure of a group that has ended with one.
inline std::exception_ptr error_or_failure_of(const completion& done) {
    if (auto error = error_of(done))
        return error;
    return done.end ? failure_of(done.end) : nullptr;
}

/// The result of join: true when every worker has ended, false when the time is up.
struct join_result {
    using type = bool;
    std::exception_ptr error(const completion& done) { return error_or_failure_of(done); }
    bool value(completion& done) { return done.what == completion::kind::done; }
};

/// The result of wait and stop: the report, even of a group that failed.
struct report_result {
    using type = report;
    std::exception_ptr error(const completion& done) { return error_of(done); }
    report value(completion& done) { return report_of(done); }
};

/// The result of run: the report of a group that did not fail.
struct success_result : report_result {
    std::exception_ptr error(const completion& done) { return error_or_failure_of(done); }
};

/// Why a call gave nothing.
inline queue_answer reason_of(const completion& done) noexcept {
    return done.what == completion::kind::time_up ? queue_answer::timed_out : queue_answer::ended;
}

/// The result of next: the next worker that ended.
struct next_result {
    using type = received<outcome>;
    std::exception_ptr error(const completion& done) { return error_of(done); }
    type value(const completion& done) {
        auto ended = outcome_of(done.next);
        return ended ? type(std::move(*ended)) : received_access::none<type>(reason_of(done));
    }
};

/// The result of a call that gives nothing.
struct no_result {
    using type = void;
    std::exception_ptr error(const completion& done) { return error_of(done); }
};

/// The value that a handler gets beside an error. If making it may fail, it is made by the
/// initiating call, which then throws: later nobody could be told.
template <class T, bool IsSafe = std::is_void_v<T> || std::is_nothrow_default_constructible_v<T>>
class value_beside_error {
public:
    T take() { return T(); }
};
template <class T>
class value_beside_error<T, false> {
public:
    T take() { return std::move(made_); }

private:
    T made_{};
};

/// Calls a handler of the signature void(std::exception_ptr, Result::type), or
/// void(std::exception_ptr) for void.
template <class Result>
class deliver_result {
public:
    explicit deliver_result(Result result) : result_(std::move(result)) {}

    template <class Handler>
    void operator()(Handler&& handler, completion done) && {
        // It may hold the group's executor. A handler on another context may destroy the group's.
        auto result = std::make_optional(std::move(result_));
        auto error = result->error(done);
        if constexpr (std::is_void_v<typename Result::type>) {
            result.reset();
            std::forward<Handler>(handler)(std::move(error));
        } else {
            auto value = error ? no_value_.take() : result->value(done);
            result.reset();
            std::forward<Handler>(handler)(std::move(error), std::move(value));
        }
    }

private:
    Result result_;
    [[no_unique_address]] value_beside_error<typename Result::type> no_value_;
};

struct deliver_completion {
    template <class Handler>
    void operator()(Handler&& handler, completion done) && {
        std::forward<Handler>(handler)(std::move(done));
    }
};

template <class T>
struct signature_with {
    using type = void(std::exception_ptr, T);
};
template <>
struct signature_with<void> {
    using type = void(std::exception_ptr);
};

// The awaitable calls. All of them await the same type of completion, because Asio's code behind an
// awaitable is slow to compile. So that code is compiled once, and only the few lines of
// await_result for each Result. All are templates, because any other coroutine is compiled in every
// file that includes it.

template <class Completion = completion>
asio::awaitable<Completion> await_completion(call on) {
    return initiate<void(Completion)>(asio::use_awaitable, std::move(on), deliver_completion());
}

template <class Result>
asio::awaitable<typename Result::type> await_result(call on, Result result = Result()) {
    completion done = co_await await_completion(std::move(on));
    if (auto error = result.error(done))
        std::rethrow_exception(std::move(error));
    if constexpr (!std::is_void_v<typename Result::type>)
        co_return result.value(done);
}

/// Whether a call with this token is a coroutine of the library's own, which is quick to compile,
/// and whose result needs no default constructor.
template <class Token>
constexpr bool is_awaited = std::is_same_v<std::remove_cvref_t<Token>, default_token>;

/// Begins a call with a completion token. `Result` makes its value.
template <class Result, class Token>
auto begin_call(call on, Token&& token, Result result = Result()) {
    if constexpr (is_awaited<Token>)
        return await_result(std::move(on), std::move(result));
    else
        return initiate<typename signature_with<typename Result::type>::type>(
            std::forward<Token>(token), std::move(on), deliver_result<Result>(std::move(result)));
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION

namespace cohort COHORT_ASIO_NAMESPACE {

/// What a call may get in the place of a completion token: no number and no duration.
template <class Token>
concept completion_token = !std::is_arithmetic_v<std::remove_cvref_t<Token>> &&
                           !detail::is_duration<std::remove_cvref_t<Token>>;

}  // namespace COHORT_ASIO_NAMESPACE
