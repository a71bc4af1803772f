// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/duration.hpp>

#include <chrono>
#include <optional>

namespace cohort {

namespace detail::inline v0_1 {
struct call_limits_access;
/// The data behind call_limits. Empty: what the pool's options say.
struct call_times {
    std::optional<std::chrono::steady_clock::duration> wait;
    std::optional<std::chrono::steady_clock::duration> run;

    friend bool operator==(const call_times&, const call_times&) = default;
};
/// @throws std::invalid_argument  `d` is not above 0
COHORT_API std::chrono::steady_clock::duration require_positive(
    const char* setter, std::chrono::steady_clock::duration d);
}  // namespace detail::inline v0_1

/// How long a call of a pool may take: `call_limits().wait(5s).run(2s)`. A value. What is not set
/// is as the pool's options say (pool_options::wait_limit, task_deadline).
class call_limits {
public:
    call_limits() = default;

    /// How long the call may wait for a worker. Then it fails with queue_timeout, and no worker is
    /// touched. With 0 it fails unless a worker is idle.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    call_limits& wait(std::chrono::duration<Rep, Period> d) {
        times_.wait = detail::to_option_duration("wait", d);
        return *this;
    }
    /// How long the call may run, from its dispatch to a worker. Then that worker is stopped and
    /// replaced, and the call fails with task_timeout.
    /// @throws std::invalid_argument  `d` is not above 0, or not a number
    template <class Rep, class Period>
    call_limits& run(std::chrono::duration<Rep, Period> d) {
        times_.run = detail::require_positive("run", detail::to_option_duration("run", d));
        return *this;
    }

    /// Whether both limits are equal.
    friend bool operator==(const call_limits&, const call_limits&) = default;

private:
    friend struct detail::call_limits_access;
    detail::call_times times_;
};

namespace detail::inline v0_1 {
struct call_limits_access {
    static const call_times& times(const cohort::call_limits& of) noexcept { return of.times_; }
};
}  // namespace detail::inline v0_1

}  // namespace cohort
