// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/encoder.hpp>
#include <cohort/detail/plan.hpp>
#include <cohort/detail/registration.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

namespace cohort::detail::inline v0_1 {

/// The function that the workers of a pool run: it makes the calls.
COHORT_API const function_node& pool_serving() noexcept;

/// A call that a pool sends to its workers.
struct pool_call {
    const function_node* function = nullptr;  // null: none
    encoded_value arguments;
};

/// The data behind `pool_options`, with its defaults. Durations are never negative.
struct pool_settings {
    using duration = std::chrono::steady_clock::duration;

    group_settings workers;  // of each; nprocs is the size of the pool
    int at_least = 1;
    duration idle = std::chrono::seconds(60);
    std::uint64_t tasks_per_worker = 0;   // 0: no limit
    std::uint64_t memory_per_worker = 0;  // in bytes; 0: no limit
    std::uint64_t queue = 1024;
    std::optional<duration> drain_period;  // empty: the grace period
    int start_attempts = 3;
    int starts_at_once = 2;
    duration ready_within = std::chrono::seconds(60);
    std::optional<duration> wait_limit;
    std::optional<duration> task_deadline;
    bool overlap = true;
    // Encodes the initializer's call, on the thread that starts the pool; null: there is none.
    std::function<pool_call()> initializer;

    // The setters check, and throw std::invalid_argument with a sentence.
    COHORT_API void set_size(int n);
    COHORT_API void set_at_least(int n);
    COHORT_API void set_queue(std::uint64_t n);
    COHORT_API void set_start_attempts(int n);
    COHORT_API void set_starts_at_once(int n);
};

}  // namespace cohort::detail::inline v0_1
