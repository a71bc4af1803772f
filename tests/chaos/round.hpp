// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"
#include "signal_process.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace chaos {

/// What this machine lets the library promise.
struct promises {
    bool has_guardian = false;  ///< what workers started ends when the host is killed
    bool has_cgroups = false;   ///< groups have cgroups, in `cgroup`
    std::string cgroup;         ///< that of the test, without other processes; empty: none
};

promises promises_here(std::string cgroup);

/// All random choices for a round; the scheduler decides the rest.
struct round_plan {
    round_plan(std::uint64_t seed, const promises& promised);

    std::uint64_t tree_seed = 0;
    int levels = 1;
    limits allowed;
    target_kind first_target = target_kind::host;
    /// The host is not killed, because after its death only workers are promised to end.
    bool spares_host = false;
    bool after_roles = false;  ///< `moment` counts reported roles, else microseconds
    int moment = 0;
    std::uint64_t action_seed = 0;  ///< for the choices while the round runs

    std::string text() const;
};

/// Runs rounds, one after the other, and counts what happens in them.
class round_runner {
public:
    explicit round_runner(promises promised) : promised_(std::move(promised)) {}

    /// @return what is wrong; empty: nothing
    std::string run(std::uint64_t seed);
    /// How often each thing happened.
    std::string statistics() const;

private:
    /// @return what is wrong with the end of the host
    std::string end_host(process_tree& tree, const round_plan& plan);
    std::string remove_cgroups(const std::string& directory, const std::string& output,
                               const std::string& mark);

    const promises promised_;
    std::map<std::string, int> counts_;
    long longest_ms_ = 0;  // from the last signal to the end of the last process
    int last_round_ = 0;
};

}  // namespace chaos
