// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"
#include "strike.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace chaos {

/// What this machine lets the library promise.
struct promises {
    bool guardian = false;  ///< what workers started ends with a host that is killed
    bool leaves = false;    ///< groups have cgroups, in `cgroup`
    std::string cgroup;     ///< the judge's own, in which nobody else is; empty: it has none
};

promises promises_here(std::string cgroup);

/// All that is thrown for a round; the rest is up to the scheduler.
struct round_plan {
    round_plan(std::uint64_t seed, const promises& promised);

    std::uint64_t tree = 0;  ///< its seed
    int levels = 1;
    limits allowed;
    victim who = victim::host;
    /// Nothing of the tree is promised to end after a killed host but workers: so it is not killed.
    bool spares_host = false;
    bool after_lines = false;  ///< kills after so many lines on the roster, else microseconds
    int moment = 0;
    std::uint64_t rest = 0;  ///< seed of what is thrown while it runs

    std::string text() const;
};

/// Plays rounds, one after the other, and counts what happened in them.
class arena {
public:
    explicit arena(promises promised) : promised_(std::move(promised)) {}

    /// @return what is wrong; empty: nothing is
    std::string play(std::uint64_t seed);
    /// What happened how often.
    std::string statistics() const;

private:
    /// @return what is wrong with the end of the host
    std::string end_host(family& tree, const round_plan& plan);
    std::string remove_leaves(const std::string& directory, const std::string& output,
                              const std::string& mark);

    const promises promised_;
    std::map<std::string, int> counts_;
    long longest_ms_ = 0;  // from the last blow to the end of the last process
    int played_ = 0;
};

}  // namespace chaos
