// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/executors.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/operation.hpp>
#include <cohort/detail/pool_border.hpp>
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

inline void cancel_call_in_pool(const std::weak_ptr<void>& pool, operation_id id,
                                cancellation_type type) noexcept {
    const bool total = (type & cancellation_type::total) != cancellation_type::none;
    cancel_in_pool(std::static_pointer_cast<pool_state>(pool.lock()), id, !total);
}

/// A call about a pool. @param begin  called with the pool and the receiver
template <class Begin>
call about_pool(pool_ref pool, const char* name, Begin begin,
                group_executor where = group_executor()) {
    return call_about(std::move(pool), name, throw_empty_pool, cancel_call_in_pool,
                      std::move(begin), std::move(where));
}

/// The submission of a task.
class submission {
public:
    submission(pool_call what, const call_times& limits, reserved_place place = reserved_place())
        : call_(std::make_shared<pool_call>(std::move(what))), limits_(limits),
          place_(std::make_shared<reserved_place>(std::move(place))) {}

    void operator()(const pool_ref& pool, const receiver& to) const {
        // A copy of this call may begin again, because Asio's deferred operations may.
        submit_call(pool, call_.use_count() == 1 ? std::move(*call_) : *call_, limits_,
                    std::move(*place_), to);
    }

private:
    std::shared_ptr<pool_call> call_;  // until it is sent; it may be large
    call_times limits_;
    std::shared_ptr<reserved_place> place_;
};

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

    std::exception_ptr error(const completion& done) {
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

    std::optional<std::conditional_t<std::is_void_v<R>, std::monostate, R>> value_;
};

/// The result of resize, recycle, stop and drain.
struct wish_result {
    using type = void;
    std::exception_ptr error(const completion& done) { return pool_error_of(done); }
};
/// The result of drain with a timeout.
struct drain_result {
    using type = bool;
    std::exception_ptr error(const completion& done) { return pool_error_of(done); }
    bool value(const completion& done) { return done.what == completion::kind::done; }
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
