// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <string>
#include <vector>

namespace cohort {

/// Which tier serves one need on this host.
class capability {
public:
    std::string
        need;  ///< "reactor", "start", "descriptors", "stolen status", "tree", "parent death"
    std::string tier;       ///< what serves it: "io_uring"
    std::string reason;     ///< why not a better one: "io_uring_setup: Operation not permitted";
                            ///< empty: it is the best
    std::string guarantee;  ///< what holds with this tier

    /// The best tier serves it.
    bool best() const noexcept { return reason.empty(); }
};

/// What this host allows, found by trying.
class COHORT_API host_capabilities {
public:
    capability reactor;        ///< how exits, deadlines and wake-ups are awaited
    capability start;          ///< how a child is made
    capability descriptors;    ///< how a child is kept from inheriting descriptors
    capability stolen_status;  ///< whether a status that somebody else took can be read back
    capability tree;           ///< how what workers have started is ended
    capability parent_death;   ///< how workers, and what they started, end when this process dies
    std::string warning;       ///< words of COHORT_FORCE that mean nothing; empty: none

    /// The needs in the order of the members above. @par Thread safety  as a const vector.
    std::vector<capability> all() const;
};

/// Probes at the first call, by trying: it starts a process or two, makes a cgroup, and removes
/// them; its caller is blocked until that is done. COHORT_FORCE, a comma list of epoll,
/// legacy_clone, no_close_range, no_cgroup, pgid, no_pidfd_info and no_guardian, forces lower
/// tiers; fork or forkserver in it is how function workers start.
/// @par Thread safety  safe.
COHORT_API host_capabilities capabilities();

/// A table, one line a need.
COHORT_API std::string to_string(const host_capabilities& host);

}  // namespace cohort
