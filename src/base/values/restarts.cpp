// SPDX-License-Identifier: BSL-1.0
#include <cohort/restarts.hpp>

#include <fmt/format.h>

#include <stdexcept>

namespace cohort {

restarts::restarts(int most) {
    if (most < 0)
        throw std::invalid_argument(fmt::format("cohort: restarts: negative ({})", most));
    data_.most = most;
}

restarts& restarts::set_backoff(detail::steady_duration first, detail::steady_duration longest) {
    if (first > longest)
        throw std::invalid_argument(
            "cohort: backoff: the first pause is more than the longest one");
    data_.first_pause = first;
    data_.longest_pause = longest;
    return *this;
}

restarts& restarts::jitter(double part) {
    if (!(part >= 0 && part <= 1))
        throw std::invalid_argument(fmt::format("cohort: jitter: {} is not in 0..1", part));
    data_.jitter = part;
    return *this;
}

restarts& restarts::scope(restart_scope who) noexcept {
    data_.scope = who;
    return *this;
}

restarts& restarts::on(restart_on what) noexcept {
    data_.after = what;
    return *this;
}

}  // namespace cohort
