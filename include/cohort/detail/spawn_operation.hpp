// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/group_handle.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/starts.hpp>
#include <cohort/detail/work.hpp>
#include <cohort/group.hpp>

#include <concepts>
#include <exception>
#include <optional>
#include <type_traits>
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
    call start(const group_executor& where) const { return begun_by(start_group, where); }
    call run(const group_executor& where) const { return begun_by(run_group, where); }
    /// Whether the call may hold ends of queues, which must not outlive the start.
    bool call_shares() const noexcept { return shares_; }
    /// Leaves such a call to the group, which lets go of it when all workers have started.
    void drop_shared_call() {
        if (shares_)
            call_ = {};
    }

private:
    call begun_by(void (*begin)(const group_ref&, receiver), const group_executor& where) const {
        return error_ ? call(error_, where) : about_group(state_, "", begin, where);
    }

    forked_call call_;  // kept, so that its last owner is on this side of the border
    bool shares_ = false;
    group_ref state_;
    std::exception_ptr error_;
};

template <class Work>
unstarted_group unstarted_of(Work work, options how) {
    return made_or_error<unstarted_group>(
        [&] { return make_plan(std::move(work), std::move(how)); });
}

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

    call begin(const group_executor& where) const { return from_.start(where); }
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

/// The result of run: the report. Owns the group, so that destroying an unfinished operation stops
/// it.
class finished_group {
public:
    using type = report;

    finished_group(unstarted_group from, const group_executor&) noexcept
        : from_(std::move(from)), group_(from_.state()) {}

    call begin(const group_executor& where) {
        call on = from_.run(where);
        from_.drop_shared_call();
        return on;
    }
    std::exception_ptr error(completion& done) { return success_result().error(done); }
    report value(completion& done) { return success_result().value(done); }

private:
    unstarted_group from_;
    group_handle group_;
};

// Templates, for the reason given in group_operations.hpp. GCC takes Asio's own deletion of a
// coroutine's frame for a wrong one.
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

/// Starts a group and waits for its end in one operation, because each completion on the user's
/// executor wakes a thread: for a short worker that takes a tenth of its time. A cancellation
/// always reaches the operation.
template <class Result = success_result>
asio::awaitable<report> await_run(unstarted_group from) {
    const group_executor where(asio::any_io_executor(co_await asio::this_coro::executor));
    const group_handle stops_when_destroyed(from.state());
    if (from.call_shares()) {
        call end = about_group(
            from.state(), "run",
            [](const group_ref& group, receiver to) {
                await_end(group, std::nullopt, std::move(to));
            },
            where);
        prepare_run(from.state());
        const group started = co_await await_start<started_group>(std::move(from));
        co_return co_await await_result(std::move(end), Result());
    }
    call on = from.run(where);
    co_return co_await await_result(std::move(on), Result());
}

#pragma GCC diagnostic pop

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
