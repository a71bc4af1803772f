// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/queue_end.hpp>

#include <concepts>
#include <iterator>
#include <optional>
#include <utility>

namespace cohort {

namespace detail::inline v0_1 {
struct received_access;

/// What a `for` may go through, also where there is nothing: its iterators without a place are
/// equal.
template <class T>
concept iterable = requires(T& of) {
    { of.begin() } -> std::forward_iterator;
    { of.end() } -> std::same_as<decltype(of.begin())>;
};

}  // namespace detail::inline v0_1

/// What a get from a queue, group::next, group::output and group::output_batch give: a value, or
/// why there is none.
/// @thread_safety distinct objects: safe. One object: unsafe if a thread changes it.
template <class T>
class received {
public:
    /// Neither a value nor a reason.
    received() noexcept = default;
    /// A value.
    explicit received(T value) : value_(std::move(value)) {}

    /// Whether there is a value.
    explicit operator bool() const noexcept { return value_.has_value(); }
    /// The value, which must be there.
    T& operator*() & noexcept { return *value_; }
    /// The value, which must be there.
    const T& operator*() const& noexcept { return *value_; }
    /// The value, which must be there. Not a reference, which would end with this object:
    /// `for (auto& line : *co_await group.output_batch())`.
    T operator*() && { return std::move(*value_); }
    /// The value, which must be there.
    T* operator->() noexcept { return &*value_; }
    /// The value, which must be there.
    const T* operator->() const noexcept { return &*value_; }

    /// Of a range: its elements, none where there is no value:
    /// `for (auto& line : co_await group.output_batch())`.
    auto begin() requires detail::iterable<T> {
        return value_ ? value_->begin() : decltype(value_->begin())();
    }
    /// Of a range: the end of its elements.
    auto end() requires detail::iterable<T> {
        return value_ ? value_->end() : decltype(value_->end())();
    }
    /// Of a range: its elements, none where there is no value.
    auto begin() const requires detail::iterable<const T> {
        return value_ ? value_->begin() : decltype(value_->begin())();
    }
    /// Of a range: the end of its elements.
    auto end() const requires detail::iterable<const T> {
        return value_ ? value_->end() : decltype(value_->end())();
    }

    /// No value will come: all there were have been given, and whoever could give one has ended.
    bool ended() const noexcept { return is(detail::queue_answer::ended); }
    /// No value came in time; of try_get: none was there.
    bool timed_out() const noexcept { return is(detail::queue_answer::timed_out); }
    /// A stop was requested before a value came.
    bool stopped() const noexcept { return is(detail::queue_answer::stopped); }

private:
    friend struct detail::received_access;

    explicit received(detail::queue_answer why) noexcept : why_(why) {}
    bool is(detail::queue_answer why) const noexcept { return !value_ && why_ == why; }

    std::optional<T> value_;
    detail::queue_answer why_ = detail::queue_answer::done;
};

namespace detail::inline v0_1 {

struct received_access {
    /// A received<T> without a value.
    template <class Received>
    static Received none(queue_answer why) {
        return Received(why);
    }
};

}  // namespace detail::inline v0_1

}  // namespace cohort
