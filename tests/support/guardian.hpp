// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "procfs.hpp"
#include "watchdog.hpp"

#include <cohort/capabilities.hpp>

#include <chrono>
#include <string>
#include <thread>

namespace cohort::test {

/// Whether applications have a guardian here, on either of its tiers.
inline bool host_has_guardian() {
    return cohort::capabilities().parent_death.tier.find("guardian") != std::string::npos;
}

/// Waits for the guardian of `host`, a process that has started a group. The guardian's start takes
/// a while, because it is executed. @return its pid; 0: there is none
inline pid_t await_guardian(pid_t host) {
    const auto deadline = std::chrono::steady_clock::now() + generous_bound() / 2;
    const bool is_expected = host_has_guardian();
    pid_t found = 0;
    while ((found = guardian_of(host)) == 0 && is_expected &&
           std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
    return found;
}

}  // namespace cohort::test
