// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/executors.hpp>
#include <cohort/detail/operation.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// Makes a public group. Defined in spawn_operation.hpp.
class group_access;

inline void cancel_in_group(const std::weak_ptr<void>& group, operation_id id,
                            cancellation_type type) noexcept {
    const bool total = (type & cancellation_type::total) != cancellation_type::none;
    cancel_operation(std::static_pointer_cast<group_state>(group.lock()), id,
                     total ? cancel_mode::stop_waiting : cancel_mode::stop_group);
}

/// A call about a group. @param begin  called with the group and the receiver
template <class Begin>
call about_group(group_ref group, const char* name, Begin begin,
                 group_executor where = group_executor()) {
    return call_about(std::move(group), name, throw_empty_group, cancel_in_group, std::move(begin),
                      std::move(where));
}

inline void stop_and_await(const group_ref& group, std::optional<time_point> until, receiver to) {
    request_stop(group);
    await_end(group, until, std::move(to));
}

/// Owns a group, with the executor that it was started on, and makes operations on it. Stops the
/// group when it lets go of it, which does not affect an ended group.
class group_handle {
public:
    group_handle() noexcept = default;
    explicit group_handle(group_ref group, group_executor where = group_executor()) noexcept
        : group_(std::move(group)), where_(std::move(where)) {}
    group_handle(group_handle&& other) noexcept
        : group_(std::exchange(other.group_, nullptr)), where_(std::move(other.where_)) {}
    group_handle& operator=(group_handle&& other) noexcept {
        if (this != &other) {
            drop();
            group_ = std::exchange(other.group_, nullptr);
            where_ = std::move(other.where_);
        }
        return *this;
    }
    ~group_handle() { drop(); }

    explicit operator bool() const noexcept { return group_ != nullptr; }
    const group_ref& get() const noexcept { return group_; }
    const asio::any_io_executor& executor() const noexcept { return where_.executor(); }

    /// The group. @throws std::logic_error  it is empty; the error names the user's call
    const group_ref& state(const char* call) const {
        if (!group_)
            throw_empty_group(call);
        return group_;
    }

    // None of these throws for an empty group, because the call completes with that error.

    /// A call about the group. @param begin  called with the group and the receiver
    template <class Begin>
    call on_group(const char* name, Begin begin) const {
        return about_group(group_, name, std::move(begin), group_ ? where_ : group_executor());
    }
    /// One that may give up after a time. @param begin  called with the deadline, too
    template <class Begin, class... Timeout>
    call ask(const char* name, Begin begin, Timeout... timeout) const {
        return on_group(name, [begin, longest = limit_of(timeout...)](const group_ref& group,
                                                                      const receiver& to) {
            begin(group, deadline_of(longest), to);
        });
    }

private:
    static std::optional<steady_duration> limit_of() noexcept { return std::nullopt; }
    template <class Rep, class Period>
    static std::optional<steady_duration> limit_of(std::chrono::duration<Rep, Period> timeout) {
        return to_steady(timeout);
    }
    void drop() noexcept {
        if (group_)
            release_group(group_);
        group_.reset();
    }

    group_ref group_;
    group_executor where_;
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
