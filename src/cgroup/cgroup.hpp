// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/unique_fd.hpp"

#include <chrono>
#include <string>
#include <system_error>
#include <vector>

namespace cohort::cgroups {

// Control groups, version 2: directories of a file system. See cgroups(7).

/// The directory of this process' own cgroup; empty when it is not in a cgroup file system that is
/// mounted here.
[[nodiscard]] std::string own_cgroup(std::string& why_not);

/// A cgroup's directory, close-on-exec and numbered 3 or higher, as clone3 wants it.
/// ENOTSUP: a directory of another file system.
[[nodiscard]] sys::unique_fd open_cgroup(const std::string& path, std::error_code& error) noexcept;

/// Makes a cgroup in that of `directory`, and opens it as above. EEXIST: there is one.
[[nodiscard]] sys::unique_fd make_cgroup_in(int directory, const std::string& name,
                                            std::error_code& error) noexcept;

// The rest acts by the open directory of a cgroup: at its path there may be another one by now.
// All of it may block for milliseconds, while the kernel's lock on cgroups is held.

/// SIGKILL to all that is in it and below it, at once by cgroup.kill, else to what is listed: then
/// it may take more than one call.
[[nodiscard]] std::error_code kill_cgroup(int directory);
/// The second way alone.
[[nodiscard]] std::error_code kill_listed(int directory);

/// Removes it with all cgroups in it. No error: it is gone, perhaps since long, and what has got
/// its name meanwhile stays. EBUSY: something lives in it; zombies do not count.
/// @param name  in the cgroup above
[[nodiscard]] std::error_code remove_cgroup(int directory, const std::string& name);

/// Blocks until nothing lives in it or below it, not longer than that.
void await_empty_cgroup(int directory, std::chrono::milliseconds longest);

/// The names of the cgroups in it.
[[nodiscard]] std::vector<std::string> cgroups_in(int directory);

}  // namespace cohort::cgroups
