// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "orders/guard.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace cohort::cgroups {

class group_cgroup;

/// What the guardian knows of a cgroup: who it is, and what it is to do.
struct cgroup_guard {
    std::uint64_t guardian = 0;
    orders::guard_message message;

    bool operator==(const cgroup_guard&) const = default;
};

/// A few cgroups of groups that have ended, for the next groups: the kernel takes as long to make
/// and to remove a cgroup as to start a small program. They stay locked, and the guardian holds them
/// as before. Safe from any thread.
class kept_cgroups {
public:
    static constexpr std::size_t most = 4;

    kept_cgroups() = default;
    kept_cgroups(const kept_cgroups&) = delete;
    kept_cgroups& operator=(const kept_cgroups&) = delete;

    /// Keeps the cgroup of a group that is over, if nothing lives in it. Never blocks.
    /// @return what is not kept, this one or another: its user must end it
    std::shared_ptr<group_cgroup> keep(std::shared_ptr<group_cgroup> emptied);
    /// One that is as it was when it was new. @return null: none
    std::shared_ptr<group_cgroup> take(const cgroup_guard& guard);
    /// Removes all that are kept. No further one is kept.
    void end_all() noexcept;

private:
    std::mutex mutex_;
    std::vector<std::shared_ptr<group_cgroup>> kept_;   // the last ones at the back
    std::vector<std::shared_ptr<group_cgroup>> unfit_;  // could not be removed yet
    bool is_closed_ = false;
};

}  // namespace cohort::cgroups
