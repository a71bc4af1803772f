// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "start/cgroup/group_cgroups.hpp"
#include "start/cgroup/memory_cgroup.hpp"

#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace cohort::start {

/// The cgroup of one worker, inside the cgroup of its group. Its files show what happens to the
/// worker's memory. It is removed when the worker has ended. If a process is left in it, it is
/// removed when that is gone and another worker of the group ends. What stays until then is ended
/// and removed by the end of the group's cgroup.
class worker_cgroup {
public:
    /// @param parent     a cgroup that counts memory
    /// @param directory  is set to the new cgroup's open directory, for worker_order::cgroup
    /// @return null: `error` says why
    static std::shared_ptr<const worker_cgroup> make(std::shared_ptr<group_cgroup> parent,
                                                     int index, base::unique_fd& directory,
                                                     std::error_code& error);

    worker_cgroup(std::shared_ptr<group_cgroup> parent, std::string name);

    const std::string& name() const noexcept { return name_; }

    /// Removes it, unless a process is left in it, and a few of those in which one was left before.
    /// Called once. May take the kernel milliseconds. Safe from any thread.
    void remove_if_empty() const noexcept;
    /// Removes it, or kills the processes in it. May take the kernel milliseconds. Safe from any
    /// thread.
    /// @return whether it is gone; if not, call again a little later
    bool end() const noexcept;

    /// Opens its directory; empty if it is gone, or no descriptor is left.
    base::unique_fd open() const noexcept;

    /// Whether the kernel's out-of-memory killer killed a process in it. Works only until the
    /// group's cgroup has ended. Safe from any thread.
    std::optional<start::oom_kill> find_oom_kill() const noexcept;

private:
    std::shared_ptr<group_cgroup> parent_;
    std::string name_;
};

}  // namespace cohort::start
