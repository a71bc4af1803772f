// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <utility>
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

/// The cgroups of a group's workers that were to be removed while a process still lived in them, by
/// name. Each has one owner: this list, or who has taken it. So nobody removes a cgroup that was
/// made under the name of a removed one. Safe from any thread.
class busy_cgroups {
public:
    void add(std::string name) {
        const std::lock_guard lock(mutex_);
        names_.push_back(std::move(name));
    }
    /// @return the one that was added first, and from now on is not here; none: there is none
    std::optional<std::string> take_first() {
        const std::lock_guard lock(mutex_);
        if (names_.empty())
            return std::nullopt;
        std::optional<std::string> first(std::move(names_.front()));
        names_.pop_front();
        return first;
    }

private:
    std::mutex mutex_;
    std::deque<std::string> names_;
};

/// What the processes in a cgroup use, as far as it has the controllers.
struct cgroup_usage {
    std::optional<std::chrono::nanoseconds> cpu_time;
    std::optional<std::uint64_t> memory;  // in bytes
    std::optional<int> tasks;             // processes and threads
};

/// @param directory  the open directory of the cgroup
cgroup_usage usage_of_cgroup(int directory);

// Limits of control groups, version 2, see Documentation/admin-guide/cgroup-v2.rst of the kernel.
// `directory` is the open directory of a cgroup, `path` its name in an error's text.

/// A limit that a file of a cgroup sets.
struct cgroup_limit {
    std::string controller;  // "memory"
    std::string file;        // "memory.max"
    std::string value;
    bool may_lack = false;  // some kernels with the controller have no such file

    friend bool operator==(const cgroup_limit&, const cgroup_limit&) = default;
};

/// @param memory  in bytes; the swap is limited to none with it
/// @param cores   the time of so many CPUs
/// @param tasks   processes and threads
std::vector<cgroup_limit> limits_of(std::optional<std::uint64_t> memory,
                                    std::optional<double> cores,
                                    std::optional<std::uint64_t> tasks);

/// What the settings of a group limit.
struct wanted_limits {
    std::vector<cgroup_limit> of_group;
    std::set<std::string> controllers;  // by which workers are limited, each in a cgroup of its own

    bool empty() const noexcept { return of_group.empty() && controllers.empty(); }
    /// "memory.max", for an error's text. There is one.
    std::string first_file() const;
};

/// Why a limit could not be set.
struct limit_failure {
    std::error_code error;
    std::string text;  // names the file

    explicit operator bool() const noexcept { return bool(error); }
};

/// Writes the limits into a cgroup's files.
limit_failure set_limits(int directory, const std::string& path,
                         std::span<const cgroup_limit> limits);

/// Sets the limits of a group in its cgroup, in which no process lives yet, and lets the cgroups in
/// it have the controllers that limit workers. If the cgroup lacks a controller, the one above is
/// made to hand it down.
limit_failure set_limits(int directory, const std::string& path, const wanted_limits& wanted);

}  // namespace cohort::start
