// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <string>
#include <vector>

namespace cohort {

/// How this host serves one need of the library. A need is served by one of its tiers: the best
/// one, or a lower one where the kernel denies the best.
class capability {
public:
    /// "reactor", "start", "descriptors", "stolen status", "tree", "limits", "parent death",
    /// "sharing" or "device memory".
    std::string need;
    std::string tier;  ///< the tier that serves the need, such as "io_uring"
    /// Why no better tier serves, such as "io_uring_setup: Operation not permitted"; empty if
    /// `tier` is the best.
    std::string reason;
    std::string guarantee;  ///< what this tier guarantees

    /// Whether the best tier serves the need.
    bool best() const noexcept { return reason.empty(); }
};

/// How this host serves each need of the library. See capabilities().
class COHORT_API host_capabilities {
public:
    capability reactor;        ///< how the library waits for exits, deadlines and wake-ups
    capability start;          ///< how a child process is made
    capability descriptors;    ///< how a child is kept from inheriting descriptors
    capability stolen_status;  ///< whether an exit status that another waiter took can be read back
    capability tree;           ///< how the processes that workers started are ended
    capability limits;         ///< which of memory_max, cpu_max, tasks_max and the like will work
    capability parent_death;   ///< how workers and their processes end when this process dies
    capability sharing;        ///< whether shared memory can have names
    capability device_memory;  ///< whether CUDA's driver is there, see cuda.hpp
    std::string warning;       ///< words in COHORT_FORCE without a meaning; empty: there are none

    /// All needs, in the order of the members above.
    /// @thread_safety safe as long as no thread changes the object.
    std::vector<capability> all() const;
};

/// Finds out what this host allows, by trying. The first call starts one or two processes, makes a
/// cgroup, removes them all, and blocks until that is done. Later calls return the same result.
/// Devices are an exception: it only says whether their driver is there, because forked copies of
/// a process that has used the driver can't use it. cuda::available() tries it.
///
/// The environment variable COHORT_FORCE forces lower tiers. It is a comma-separated list of epoll,
/// legacy_clone, no_close_range, no_cgroup, pgid, no_pidfd_info, no_guardian and no_file_system.
/// The words fork and forkserver in that list replace start_method::spawn for function workers.
/// @thread_safety safe.
COHORT_API host_capabilities capabilities();

/// A table with one line for each need, and the warning if there is one.
COHORT_API std::string to_string(const host_capabilities& host);

}  // namespace cohort
