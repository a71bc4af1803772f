// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "table.hpp"

#include <vector>

namespace faults {

/// The results of many trials.
struct tally {
    int passed = 0;
    int failed = 0;
    int unreached = 0;  ///< the call was made less often this time
};

/// The calls and descriptors of a start of some kind if nothing fails.
struct baseline {
    std::map<call_site, int> counts;
    std::map<std::string, int> descriptors;
};

/// Works through the rows in `processes` child processes at once, each with a share of the rows.
/// Prints the rows that fail.
/// @param baselines  by the name of the kind of start
tally run_rows(const std::vector<row>& rows, const std::map<std::string, baseline>& baselines,
               std::chrono::milliseconds bound, int processes);

/// Runs a host of each kind without a fault.
/// @param refused  why no system call can be watched here; empty: they can be
/// @throws std::runtime_error  a host fails
std::map<std::string, baseline> measure_baselines(const std::vector<start_kind>& kinds,
                                                  std::chrono::milliseconds bound,
                                                  std::string& refused);

}  // namespace faults
