// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"

// The host of a round, and what runs in its workers.
namespace chaos {

/// Held by every process of the tree but guardians and fork servers. Each worker writes a line
/// there: its pid, and what it is.
inline constexpr int roster_number = 9;
/// The host's: what the judge asks of it.
inline constexpr int gate_number = 8;

/// "nested", "function" or "command" on the roster: never ends by itself, so that its death fails
/// its group. Others write "brief", or "child".
inline constexpr const char* brief = "brief";
inline constexpr const char* child = "child";

/// What a byte through the gate asks for.
enum class wish : char {
    stop = 's',   ///< stop all groups, then end
    exit = 'x',   ///< exit() with live groups
    drop = 'd',   ///< drop the groups, then exit()
    abort = 'a',  ///< _exit() with live groups: nothing of the library runs
};

/// How a host ends that is not killed.
enum ending : int {
    all_well = 0,
    a_group_failed = 3,
    a_start_failed = 4,
    as_asked = 5,
};

int host_main(std::uint64_t seed, int levels, limits allowed);
/// Starts one group: that ends what others have left below the same cgroup.
int sweeper_main();

}  // namespace chaos
