// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"

// The host of a round, and what runs in its workers.
namespace chaos {

/// The roster: a pipe, held by every process of the tree but guardians and fork servers. Each
/// worker writes a line there: its pid and its role.
inline constexpr int roster_number = 9;
/// The gate: the pipe by which the judge sends a wish to the host.
inline constexpr int gate_number = 8;

/// The roles on the roster. "nested", "function" and "command" never end by themselves, so that the
/// death of such a worker fails its group. Others write "brief", or "child".
inline constexpr const char* brief = "brief";
inline constexpr const char* child = "child";

/// A wish of the judge, sent as one byte through the gate.
enum class wish : char {
    stop = 's',   ///< stop all groups, then end
    exit = 'x',   ///< exit() with live groups
    drop = 'd',   ///< drop the groups, then exit()
    abort = 'a',  ///< _exit() with live groups: nothing of the library runs
};

/// The exit codes of a host that is not killed.
enum ending : int {
    all_well = 0,
    a_group_failed = 3,
    a_start_failed = 4,
    as_asked = 5,
};

int host_main(std::uint64_t seed, int levels, limits allowed);
/// Starts one group, which removes what others have left below the same cgroup.
int sweeper_main();

}  // namespace chaos
