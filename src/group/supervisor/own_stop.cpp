// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/own_stop.hpp"

#include "base/values/quantity.hpp"

#include <cohort/detail/duration.hpp>

#include <fmt/format.h>

#include <utility>

namespace cohort::groups {

cut_short time_is_up(std::chrono::steady_clock::duration limit, limit_of whose) {
    const bool is_groups = whose == limit_of::group;
    return cut_short{std::chrono::steady_clock::now(), cause::timed_out,
                     (is_groups ? "stopped after its group's time limit of "
                                : "stopped after its time limit of ") +
                         base::duration_text(limit),
                     is_groups};
}

cut_short too_much_output(std::uint64_t limit, stream from) {
    return cut_short{std::chrono::steady_clock::now(), cause::output_limit,
                     fmt::format("stopped after it had written more than {} bytes to its {}",
                                 base::with_separators(limit), to_string(from))};
}

own_stop::own_stop(loop::engine& loop, const detail::group_settings& settings)
    : loop_(loop), grace_period_(settings.grace_period), kill_timeout_(settings.kill_timeout) {}

void own_stop::begin_at(time_point when, base::callback<void(step)> take) {
    end();
    may_begin_ = true;
    take_ = std::move(take);
    arm(when, step::stop_signal);
}

void own_stop::arm(time_point when, step next) {
    timer_ = loop_.timer().at(when, [this, next] {
        timer_.reset();
        go_on(next);
    });
}

void own_stop::go_on(step now) {
    has_begun_ = true;
    may_begin_ = false;
    const auto length = now == step::stop_signal ? grace_period_ : kill_timeout_;
    if (now != step::give_up)
        arm(detail::saturating_add(std::chrono::steady_clock::now(), length),
            now == step::stop_signal ? step::kill : step::give_up);
    // A copy, because a step may call end(), which lets go of the worker.
    const auto take = now == step::give_up ? std::exchange(take_, {}) : take_;
    take(now);
}

void own_stop::group_stops() noexcept {
    if (!has_begun_)
        end();
}

void own_stop::end() noexcept {
    if (timer_)
        loop_.timer().cancel(*std::exchange(timer_, std::nullopt));
    take_ = {};
    may_begin_ = false;
}

}  // namespace cohort::groups
