// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "cgroup/group_cgroups.hpp"
#include "cgroup/memory_cgroup.hpp"
#include "sys/unique_fd.hpp"

#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace cohort::cgroups {

/// The cgroup of one worker, in the cgroup of its group: what happens to the worker's memory is told
/// there. It ends with that cgroup, and so does what the worker leaves in it.
class worker_cgroup {
public:
    /// @param parent     a cgroup that counts memory
    /// @param directory  becomes that of the new cgroup, for worker_order::cgroup
    /// @return null: see `error`
    static std::shared_ptr<const worker_cgroup> make(std::shared_ptr<const group_cgroup> parent,
                                                     int index, sys::unique_fd& directory,
                                                     std::error_code& error);

    worker_cgroup(std::shared_ptr<const group_cgroup> parent, std::string name);

    const std::string& name() const noexcept { return name_; }

    /// Whether the kernel's out-of-memory killer took a process in it. As long as the group's cgroup
    /// has not ended. Safe from any thread.
    std::optional<cgroups::oom_kill> find_oom_kill() const noexcept;

private:
    std::shared_ptr<const group_cgroup> parent_;
    std::string name_;
};

}  // namespace cohort::cgroups
