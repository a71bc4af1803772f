// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"

// The host of a round, and what runs in its workers.
namespace chaos {

/// The role pipe: held by every process of the tree but guardians and fork servers. Each worker
/// writes a line there: its pid and its role.
inline constexpr int role_pipe_number = 9;
/// The control pipe: by it the test sends a request to the host.
inline constexpr int control_pipe_number = 8;

/// The roles in the role pipe. "nested", "function" and "command" never end by themselves, so
/// that the death of such a worker fails its group. Such a worker whose death may be followed by
/// another attempt writes "again". Others write "brief", or "child".
inline constexpr const char* brief = "brief";
inline constexpr const char* child = "child";
inline constexpr const char* again = "again";
/// In place of a role: begins what is told of a promise that was broken.
inline constexpr const char* broken = "broken: ";

/// A request of the test, sent as one byte through the control pipe.
enum class host_request : char {
    stop = 's',   ///< stop all groups, then end
    exit = 'x',   ///< exit() with live groups
    drop = 'd',   ///< drop the groups, then exit()
    abort = 'a',  ///< _exit() with live groups: nothing of the library runs
};

/// The exit codes of a host that is not killed.
enum exit_code : int {
    all_well = 0,
    a_group_failed = 3,
    a_start_failed = 4,
    as_requested = 5,
};

int host_main(std::uint64_t seed, int levels, limits allowed);
/// Starts one group. That removes the cgroups that others have left below the same cgroup.
int cleanup_main();

}  // namespace chaos
