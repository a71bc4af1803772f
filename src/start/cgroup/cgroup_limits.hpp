// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace cohort::start {

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
