// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/duration.hpp>

#include <chrono>
#include <optional>
#include <stop_token>
#include <utility>

namespace cohort::detail::inline v0_1 {

/// How long a blocking call waits.
class patience {
public:
    static patience none() { return patience(steady_time_point::min()); }
    static patience endless() { return patience(std::nullopt); }
    static patience until(std::stop_token stop) {
        patience made(std::nullopt);
        made.stop = std::move(stop);
        return made;
    }
    template <class Rep, class Period>
    static patience until(std::chrono::duration<Rep, Period> timeout) {
        return patience(saturating_add(std::chrono::steady_clock::now(), to_steady(timeout)));
    }

    std::optional<steady_time_point> deadline;
    std::stop_token stop;

private:
    explicit patience(std::optional<steady_time_point> when) : deadline(when) {}
};

}  // namespace cohort::detail::inline v0_1
