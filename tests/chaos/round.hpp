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
    bool guardian = false;  ///< what workers started ends when the host is killed
    bool leaves = false;    ///< groups have cgroups, in `cgroup`
    std::string cgroup;     ///< the judge's own, without other processes; empty: none
};

promises promises_here(std::string cgroup);

/// All random choices for a round; the scheduler decides the rest.
struct round_plan {
    round_plan(std::uint64_t seed, const promises& promised);

    std::uint64_t tree = 0;  ///< its seed
    int levels = 1;
    limits allowed;
    victim who = victim::host;
    /// The host is not killed, because after its death only workers are promised to end.
    bool spares_host = false;
    bool after_lines = false;  ///< `moment` counts lines on the roster, else microseconds
    int moment = 0;
    std::uint64_t rest = 0;  ///< seed of the choices while the round runs

    std::string text() const;
};

/// Plays rounds, one after the other, and counts what happens in them.
class arena {
public:
    explicit arena(promises promised) : promised_(std::move(promised)) {}

    /// @return what is wrong; empty: nothing
    std::string play(std::uint64_t seed);
    /// How often each thing happened.
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
