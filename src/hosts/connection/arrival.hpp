// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/round_trips.hpp"

#include <chrono>
#include <optional>

namespace cohort::multihost {

/// When a message came, by the clocks of this host.
struct arrival {
    time_point at;
    std::chrono::system_clock::time_point time_of_day;
    duration under_way{0};  // how long, at least: half of the smallest round trip
    std::optional<duration> offset = {};  // see round_trips
};

}  // namespace cohort::multihost
