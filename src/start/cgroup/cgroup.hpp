// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <chrono>
#include <string>
#include <system_error>
#include <vector>

namespace cohort::start {

// Control groups, version 2: directories of a file system. See cgroups(7).

/// The path of the directory of this process' cgroup. Empty if no mounted file system shows that
/// cgroup; then `why_not` says why.
[[nodiscard]] std::string own_cgroup(std::string& why_not);

/// Opens the directory of a cgroup. The descriptor is close-on-exec, numbered 3 or higher, and fit
/// for clone3. ENOTSUP: the directory is in another file system.
[[nodiscard]] base::unique_fd open_cgroup(const std::string& path, std::error_code& error) noexcept;

/// Makes a cgroup in the one whose directory is given, and opens it like open_cgroup(). EEXIST: the
/// name is taken.
[[nodiscard]] base::unique_fd make_cgroup_in(int directory, const std::string& name,
                                             std::error_code& error) noexcept;

// The functions below take the open directory of a cgroup and not its path, because another cgroup
// may have that path by now. They may block for milliseconds, until the kernel's lock on cgroups is
// free.

/// Sends SIGKILL to all processes in the cgroup and below it. cgroup.kill does that at once; where
/// it does not exist this is kill_listed().
[[nodiscard]] std::error_code kill_cgroup(int directory);
/// Sends SIGKILL to each process that cgroup.procs lists, in the cgroup and below it. It may take
/// more than one call, because processes may fork meanwhile.
[[nodiscard]] std::error_code kill_listed(int directory);

/// Removes a cgroup that is empty, by three system calls. EBUSY: a process lives in it, or there is
/// a cgroup in it. Otherwise like remove_cgroup().
[[nodiscard]] std::error_code remove_empty_cgroup(int directory, const std::string& name);

/// Removes the cgroup and all cgroups in it. No error if it was removed before; another cgroup that
/// has got its name since then stays. EBUSY: a process lives in it; zombies do not count.
/// @param name  the cgroup's name in its parent cgroup
[[nodiscard]] std::error_code remove_cgroup(int directory, const std::string& name);

/// Blocks until no process lives in the cgroup or below it, or `longest` has passed.
void await_empty_cgroup(int directory, std::chrono::milliseconds longest);

/// The names of the cgroups directly in this one.
[[nodiscard]] std::vector<std::string> cgroups_in(int directory);

}  // namespace cohort::start
