// SPDX-License-Identifier: BSL-1.0
#include <cohort/call_limits.hpp>
#include <cohort/detail/pool_plan.hpp>

#include <fmt/format.h>

#include <stdexcept>

namespace cohort::detail::inline v0_1 {
namespace {

void require_some_of(const char* setter, std::int64_t n) {
    if (n < 1)
        throw std::invalid_argument(fmt::format("cohort: {}: less than 1 ({})", setter, n));
}

}  // namespace

std::chrono::steady_clock::duration require_positive(const char* setter,
                                                     std::chrono::steady_clock::duration d) {
    if (d <= std::chrono::steady_clock::duration::zero())
        throw std::invalid_argument(fmt::format("cohort: {}: the duration is not above 0", setter));
    return d;
}

void pool_settings::set_size(int n) {
    require_some_of("pool_options", n);
    workers.nprocs = n;
}

void pool_settings::set_at_least(int n) {
    if (n < 0)
        throw std::invalid_argument(fmt::format("cohort: at_least: negative ({})", n));
    at_least = n;
}

void pool_settings::set_queue(std::uint64_t n) {
    if (n == 0)
        throw std::invalid_argument("cohort: queue: less than 1 (0)");
    queue = n;
}

void pool_settings::set_start_attempts(int n) {
    require_some_of("start_attempts", n);
    start_attempts = n;
}

void pool_settings::set_starts_at_once(int n) {
    require_some_of("starts_at_once", n);
    starts_at_once = n;
}

}  // namespace cohort::detail::inline v0_1
