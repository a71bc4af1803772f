// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/group_handle.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/work.hpp>
#include <cohort/group.hpp>

#include <exception>
#include <utility>

// The operation that starts a group. It stands between `spawn` and the border.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// A group before the start of its workers.
class unstarted_group {
public:
    /// Reads the caller's environ, working directory and affinity. @throws what spawn throws
    explicit unstarted_group(spawn_plan plan)
        : call_(plan.call), shares_(call_ && !plan.attachments.empty()),
          state_(create_group(std::move(plan))) {}
    /// A group that could not be made: its start fails with `why`.
    explicit unstarted_group(std::exception_ptr why) noexcept : error_(std::move(why)) {}

    const group_ref& state() const noexcept { return state_; }
    request start() const {
        return error_ ? request(error_) : request(request::kind::start, "spawn");
    }
    request run() const {
        return error_ ? request(error_) : request(request::kind::run, "run");
    }
    /// Whether the call may hold ends of queues, which must not outlive the start.
    bool call_shares() const noexcept { return shares_; }

private:
    forked_call call_;  // kept, so that its last owner is on this side of the border
    bool shares_ = false;
    group_ref state_;
    std::exception_ptr error_;
};

/// Makes a public group from its parts.
class group_access {
public:
    static group make(group_handle handle) noexcept { return group(std::move(handle)); }
};

/// The result of spawn: the group. Owns the group from the initiation on, so that destroying an
/// unfinished operation stops the group.
class started_group {
public:
    using type = group;

    started_group(unstarted_group from, group_executor where) noexcept
        : from_(std::move(from)), handle_(from_.state(), std::move(where)) {}

    std::exception_ptr error(const completion& done) {
        auto error = error_of(done);
        if (error)
            handle_ = group_handle();
        return error;
    }
    group value(completion&) { return group_access::make(std::move(handle_)); }

private:
    unstarted_group from_;
    group_handle handle_;
};

template <class Token, class Executor>
auto async_start(unstarted_group from, Token&& token, Executor executor) {
    const group_executor where(std::move(executor));
    group_request on(group_job(from.state(), from.start()), where);
    return async_result_of(std::move(on), std::forward<Token>(token),
                           started_group(std::move(from), where));
}

// Templates, for the reason given in group_operations.hpp. GCC takes Asio's own deletion of a
// coroutine's frame for a wrong one.
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

template <class Result = started_group>
asio::awaitable<group> await_start(unstarted_group from) {
    const group_executor where(asio::any_io_executor(co_await asio::this_coro::executor));
    group_request on(group_job(from.state(), from.start()), where);
    Result result(std::move(from), where);
    completion done = co_await await_completion(std::move(on));
    if (auto error = result.error(done))
        std::rethrow_exception(std::move(error));
    co_return result.value(done);
}

/// Starts a group and waits for its end in one operation, because each completion on the user's
/// executor wakes a thread: for a short worker that takes a tenth of its time. A cancellation
/// always reaches the operation.
template <class Result = success_result>
asio::awaitable<report> await_run(unstarted_group from) {
    const group_executor where(asio::any_io_executor(co_await asio::this_coro::executor));
    const group_handle stops_when_destroyed(from.state());
    if (from.call_shares()) {
        group_request end(group_job(from.state(), request(request::kind::end, "run")), where);
        prepare_run(from.state());
        const group started = co_await await_start(std::move(from));
        co_return co_await await_result(std::move(end), Result());
    }
    group_request on(group_job(from.state(), from.run()), where);
    co_return co_await await_result(std::move(on), Result());
}

#pragma GCC diagnostic pop

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
