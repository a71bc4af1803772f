// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/command.hpp>
#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/group_handle.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/spawn_operation.hpp>
#include <cohort/outcome.hpp>

#include <chrono>
#include <exception>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

// The operation of execute(): a group of one command, run to its end.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// The group of a command before its start. @throws what execute throws
inline unstarted_group unstarted_execution(
    command program, std::optional<steady_duration> time_limit = std::nullopt) {
    return unstarted_group(
        plan_of_execution(command_access::program(std::move(program)), time_limit));
}

/// The result of execute: the outcome of the command. Owns the group, so that destroying an
/// unfinished operation stops it.
class execution {
public:
    using type = outcome;

    explicit execution(const unstarted_group& from) noexcept : group_(from.state()) {}

    std::exception_ptr error(completion& done) {
        // The time was up during the start.
        if (done.what == completion::kind::failed && done.end) {
            if (outcome_in(done))
                return nullptr;
            start_failure late;
            late.code = std::make_error_code(std::errc::timed_out);
            late.text = "the time was up before the command had started";
            late.index = 0;
            late.stage = "exec";
            return failure_of(late);
        }
        return error_of(done);
    }
    outcome value(const completion& done) { return *outcome_in(done); }

private:
    static std::optional<outcome> outcome_in(const completion& done) {
        report all = report_of(done);
        if (all.outcomes.empty())
            return std::nullopt;
        return std::move(all.outcomes.front());
    }

    group_handle group_;
};

// GCC takes Asio's own deletion of a coroutine's frame for a wrong one.
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

template <class Result>
asio::awaitable<outcome> await_execution(unstarted_group from) {
    const group_executor where(asio::any_io_executor(co_await asio::this_coro::executor));
    group_request on(group_job(from.state(), from.run()), where);
    Result result(from);
    co_return co_await await_result(std::move(on), std::move(result));
}

#pragma GCC diagnostic pop

/// The executor of an execution context, or the executor itself.
template <class Where>
asio::any_io_executor executor_at(Where& where) {
    if constexpr (std::is_base_of_v<asio::execution_context, std::remove_cv_t<Where>>)
        return where.get_executor();
    else
        return where;
}

/// @param make  makes the group; what it throws is the operation's result
template <class Make, class Token>
auto async_execution(asio::any_io_executor executor, Make make, Token&& token) {
    const auto made = [&] {
        try {
            return make();
        } catch (...) {
            return unstarted_group(std::current_exception());
        }
    };
    const unstarted_group from = made();
    return async_result_of(
        group_request(group_job(from.state(), from.run()), group_executor(std::move(executor))),
        std::forward<Token>(token), execution(from));
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
