// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "fault_injector.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace faults {

/// A kind of start.
struct start_kind {
    std::string what;  ///< see host_main
    bool is_warm = false;

    std::string name() const { return what + (is_warm ? "/warm" : "/cold"); }
};

/// The result of one trial.
struct trial_result {
    std::string wrong;     ///< what is wrong; empty: nothing
    std::string refused;   ///< why no call can be watched here
    bool happened = true;  ///< the fault has happened
    std::string first;     ///< the result of the faulted group
    std::map<call_site, int> counts;
    std::map<std::string, int> descriptors;  ///< by kind, those of the host at its end
};

/// The conditions of a trial.
struct conditions {
    std::string cgroup;                       ///< no other process is in it; empty: there is none
    std::string output;                       ///< the file for what hosts print
    std::chrono::milliseconds bound{60'000};  ///< a host that takes longer hangs
};

/// Runs a host in which one call fails, or none. The calling process must be a subreaper without
/// other children.
/// @param usual  the descriptors that a host has at the end if nothing fails
trial_result run_trial(const start_kind& kind, const std::optional<fault>& wanted,
                       const std::map<std::string, int>& usual, const conditions& where);

}  // namespace faults
