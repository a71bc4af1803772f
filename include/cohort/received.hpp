// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/queue_end.hpp>

#include <optional>
#include <utility>

namespace cohort {

/// What a get from a queue, group::next and group::output give: a value, or why there is none.
/// @thread_safety distinct objects: safe. One object: unsafe if a thread changes it.
template <class T>
class received {
public:
    /// Neither a value nor a reason.
    received() noexcept = default;
    /// A value.
    explicit received(T value) : value_(std::move(value)) {}
    /// No value. For the library.
    explicit received(detail::queue_answer why) noexcept : why_(why) {}

    /// Whether there is a value.
    explicit operator bool() const noexcept { return value_.has_value(); }
    /// The value, which must be there.
    T& operator*() noexcept { return *value_; }
    /// The value, which must be there.
    const T& operator*() const noexcept { return *value_; }
    /// The value, which must be there.
    T* operator->() noexcept { return &*value_; }
    /// The value, which must be there.
    const T* operator->() const noexcept { return &*value_; }

    /// No value will come: all there were have been given, and whoever could give one has ended.
    bool ended() const noexcept { return is(detail::queue_answer::ended); }
    /// No value came in time; of try_get: none was there.
    bool timed_out() const noexcept { return is(detail::queue_answer::timed_out); }
    /// A stop was requested before a value came.
    bool stopped() const noexcept { return is(detail::queue_answer::stopped); }

private:
    bool is(detail::queue_answer why) const noexcept { return !value_ && why_ == why; }

    std::optional<T> value_;
    detail::queue_answer why_ = detail::queue_answer::done;
};

}  // namespace cohort
