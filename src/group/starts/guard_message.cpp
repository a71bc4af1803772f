// SPDX-License-Identifier: BSL-1.0
#include "group/starts/guard_message.hpp"

#include "base/sys/tiers.hpp"

#include <chrono>
#include <climits>
#include <csignal>
#include <cstdint>

namespace cohort::groups {

protocol::guard_message guard_message_of(const detail::group_settings& s, protocol::guarded what) {
    using std::chrono::milliseconds;
    constexpr milliseconds longest{INT_MAX};
    const auto grace = s.daemon                   ? milliseconds(0)
                       : s.grace_period > longest ? longest
                                                  : std::chrono::ceil<milliseconds>(s.grace_period);
    protocol::guard_message message;
    message.what = what;
    message.stop_signal = s.stop_signal;
    message.grace_ms = static_cast<std::int32_t>(grace.count());
    message.by_number = !base::is_best(&base::tiers::pidfd_group);
    return message;
}

protocol::guard_message guard_message_of_kept() {
    constexpr std::chrono::milliseconds longest_keeping = std::chrono::minutes(10);
    auto message = guard_message_of({}, protocol::guarded::worker);
    message.stop_signal = SIGCONT;  // changes nothing
    message.grace_ms = static_cast<std::int32_t>(longest_keeping.count());
    return message;
}

}  // namespace cohort::groups
