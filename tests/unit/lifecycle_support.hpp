// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/lifecycle/machine.hpp"

#include <chrono>
#include <string>
#include <vector>

/// Drives the lifecycle's machine by events at times of a test clock.
namespace lifecycle_test {

using namespace cohort::groups;
using namespace std::chrono_literals;
using cohort::on_failure;

inline time_point at(duration since_start) { return time_point{} + 1h + since_start; }

inline std::string seconds(time_point t) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(t - at(0s)).count());
}

/// Feeds an event. @return the result: "send_stop_signal -> stopping until 30, 2 live"
inline std::string take(machine& m, event e, duration when) {
    std::string text;
    for (const action a : m.on(e, at(when)))
        text += std::string(to_string(a)) + " ";
    text += std::string("-> ") + to_string(m.current());
    if (m.deadline())
        text += " until " + (*m.deadline() == time_point::max() ? "ever" : seconds(*m.deadline()));
    return text + ", " + std::to_string(m.live()) + " live";
}

inline machine after(const rules& r, const std::vector<event>& script) {
    machine m(r);
    for (const event e : script) {
        const bool in_time = e == event::deadline && m.deadline();
        m.on(e, in_time ? *m.deadline() : at(0s));
    }
    return m;
}

inline const rules usual{5s, 30s, 10s, on_failure::stop_all};
inline const rules keep{5s, 30s, 10s, on_failure::keep_going};

}  // namespace lifecycle_test
