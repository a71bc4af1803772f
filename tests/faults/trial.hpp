// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "watch.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace faults {

/// A kind of start.
struct form {
    std::string what;  ///< see host_main
    bool is_warm = false;

    std::string name() const { return what + (is_warm ? "/warm" : "/cold"); }
};

/// What became of one host.
struct finding {
    std::string wrong;     ///< empty: nothing is
    std::string refused;   ///< why nothing can be watched here
    bool happened = true;  ///< the fault did
    std::string first;     ///< how the faulted group went
    std::map<start_template, int> counts;
    std::map<std::string, int> descriptors;  ///< kinds of those that the host has at the end
};

/// Where and how hosts are tried.
struct conditions {
    std::string cgroup;                       ///< nobody else is in there; empty: there is none
    std::string output;                       ///< what hosts print goes there
    std::chrono::milliseconds bound{60'000};  ///< what takes longer hangs
};

/// Runs a host in which one call fails, or none. The calling process must be a subreaper without
/// other children.
/// @param usual  what a host has at the end if nothing fails
finding try_host(const form& kind, const std::optional<fault>& wanted,
                 const std::map<std::string, int>& usual, const conditions& where);

}  // namespace faults
