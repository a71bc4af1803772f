// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/executors.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/operation.hpp>
#include <cohort/detail/pool_border.hpp>
#include <cohort/detail/wait_place.hpp>
#include <cohort/task.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>

// The calls of pools: what they give, and how they are awaited.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// The handler in the cancellation slot of a call.
class call_canceller {
public:
    call_canceller(const pool_ref& pool, operation_id id) noexcept : pool_(pool), id_(id) {}
    void operator()(cancellation_type type) const noexcept {
        if (type == cancellation_type::none)
            return;
        const bool total = (type & cancellation_type::total) != cancellation_type::none;
        cancel_in_pool(pool_, id_, !total);
    }

private:
    std::weak_ptr<pool_state> pool_;
    operation_id id_;
};

/// Nobody gets what the operation gives.
inline void stop_in_pool(const std::weak_ptr<pool_state>& pool, operation_id id) noexcept {
    cancel_in_pool(pool, id, true);
}
using pool_place = wait_place<pool_state, &stop_in_pool>;

/// A call of a task, as a job of an operation.
class call_job {
public:
    call_job(pool_ref pool, pool_call call, const call_times& limits,
             reserved_place place = reserved_place())
        : pool_(std::move(pool)), call_(std::make_shared<pool_call>(std::move(call))),
          limits_(limits), reserved_(std::make_shared<reserved_place>(std::move(place))),
          place_(std::make_shared<pool_place>(pool_)) {}
    /// A call that fails with `why`.
    call_job(pool_ref pool, std::exception_ptr why)
        : pool_(std::move(pool)), error_(std::move(why)),
          place_(std::make_shared<pool_place>(pool_)) {}

    void send(const receiver& to) const {
        if (error_)
            std::rethrow_exception(error_);
        if (!pool_)
            throw_empty_pool("submit");
        submit_call(pool_, std::move(*call_), limits_, std::move(*reserved_), to);
        place_->set(to.id);
    }
    call_canceller cancelled_by(operation_id id) const noexcept { return {pool_, id}; }
    pool_place::guard guard() const { return pool_place::guard(place_); }

private:
    pool_ref pool_;
    std::shared_ptr<pool_call> call_;  // until it is sent; it may be large
    call_times limits_;
    std::shared_ptr<reserved_place> reserved_;
    std::exception_ptr error_;
    std::shared_ptr<pool_place> place_;
};

/// A wish, a resize or a start, as a job of an operation.
class pool_job {
public:
    enum class kind { start, wish, resize };

    /// Starts the pool. @param why  set: it could not be made, and the start fails with that
    pool_job(pool_ref pool, std::exception_ptr why)
        : what_(kind::start), pool_(std::move(pool)), error_(std::move(why)) {}
    pool_job(pool_ref pool, const char* call, pool_wish wish,
             std::optional<steady_duration> timeout = std::nullopt)
        : what_(kind::wish), pool_(std::move(pool)), call_(call), wish_(wish), timeout_(timeout) {}
    pool_job(pool_ref pool, std::shared_ptr<const pool_settings> settings, std::exception_ptr why)
        : what_(kind::resize), pool_(std::move(pool)), call_("resize"),
          settings_(std::move(settings)), error_(std::move(why)) {}

    void send(const receiver& to) const {
        if (error_)
            std::rethrow_exception(error_);
        if (!pool_)
            throw_empty_pool(call_);
        switch (what_) {
        case kind::start:
            return start_pool(pool_, to);
        case kind::resize:
            return resize_pool(pool_, *settings_, to);
        case kind::wish:
            break;
        }
        std::optional<time_point> until;
        if (timeout_)  // counted from the initiation, which is when the operation is awaited
            until = saturating_add(std::chrono::steady_clock::now(), *timeout_);
        ask_pool(pool_, wish_, until, to);
    }
    call_canceller cancelled_by(operation_id id) const noexcept { return {pool_, id}; }

private:
    kind what_;
    pool_ref pool_;
    const char* call_ = "";
    pool_wish wish_ = pool_wish::drain;
    std::optional<steady_duration> timeout_;
    std::shared_ptr<const pool_settings> settings_;
    std::exception_ptr error_;
};

// --- results ---

/// Like error_of(), also for a pool none of whose workers becomes ready.
inline std::exception_ptr pool_error_of(const completion& done) {
    return done.what == completion::kind::failed && done.call ? failure_of(*done.call)
                                                              : error_of(done);
}

/// The result of submit. R may be void.
template <class R>
class task_result {
public:
    using type = R;
    explicit task_result(pool_place::guard guard) noexcept : guard_(std::move(guard)) {}

    std::exception_ptr error(const completion& done) {
        guard_.completed();
        if (auto error = error_of(done))
            return error;
        try {
            take(*done.call);
            return nullptr;
        } catch (...) {
            return std::current_exception();
        }
    }
    R value(const completion&) { return std::move(*value_); }

private:
    void take(pools::ended_call& call) {
        if constexpr (std::is_void_v<R>) {
            (void)value_of(call, "");
        } else {
            const char* const name = typeid(R).name();
            const auto value = value_of(call, name);
            try {
                value_.emplace(decode_value<R>(value.cbor, value.attachments));
            } catch (const std::exception& e) {
                refuse_value(call, name, e.what());
            }
        }
    }

    pool_place::guard guard_;
    std::optional<std::conditional_t<std::is_void_v<R>, std::monostate, R>> value_;
};

/// The result of resize, recycle, stop and drain.
struct wish_result {
    std::exception_ptr error(const completion& done) { return pool_error_of(done); }
};
/// The result of drain with a timeout.
struct drain_result : wish_result {
    using type = bool;
    bool value(const completion& done) { return done.what == completion::kind::done; }
};

template <class R, class Token>
auto async_call(job_on<call_job> on, Token&& token) {
    task_result<R> result(on.job.guard());
    if constexpr (std::is_void_v<R>)
        return initiate<void(std::exception_ptr)>(
            std::forward<Token>(token), std::move(on),
            deliver_no_value<task_result<R>>(std::move(result)));
    else
        return async_result_of(std::move(on), std::forward<Token>(token), std::move(result));
}

template <class R>
asio::awaitable<R> await_call(job_on<call_job> on) {
    task_result<R> result(on.job.guard());
    if constexpr (std::is_void_v<R>)
        return await_nothing(std::move(on), std::move(result));
    else
        return await_result(std::move(on), std::move(result));
}

template <class Token>
auto async_wish(job_on<pool_job> on, Token&& token) {
    return initiate<void(std::exception_ptr)>(std::forward<Token>(token), std::move(on),
                                              deliver_no_value<wish_result>(wish_result()));
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
