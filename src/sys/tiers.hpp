// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace cohort::sys {

/// Which way serves a need here, and why not a better one. Empty `reason`: the best one serves.
struct tier_choice {
    bool best = true;
    std::string reason;  // "clone3: Function not implemented", "forced by COHORT_FORCE"
};

/// What the kernel and its filters allow, tried once at first use, then fixed for the process.
/// EPERM, ENOSYS, EINVAL, E2BIG, ENOMEM and EMFILE all mean "not here".
struct tiers {
    tier_choice io_uring_wanted;  // false: COHORT_FORCE=epoll. Whether a ring works is the
                                  // reactor's to find out.
    tier_choice clone3;           // else legacy clone
    tier_choice
        close_range;  // CLOSE_RANGE_UNSHARE with a shared table; else a walk over /proc/self/fd
    tier_choice cgroup_wanted;  // false: COHORT_FORCE=no_cgroup. Whether a process can make one is
                                // for cgroup/group_cgroups.hpp to find out.
    tier_choice pidfd_group;    // PIDFD_SIGNAL_PROCESS_GROUP (Linux 6.9); else kill(-pgid)
    tier_choice pidfd_info;     // PIDFD_GET_INFO with PIDFD_INFO_EXIT (Linux 6.15); else a stolen
                                // status is lost
    tier_choice guardian;  // ends, after this process' death, what its workers started; else none
    std::optional<start_method> functions;  // how function workers are started that say spawn
    std::string unknown_forced;  // words of COHORT_FORCE that mean nothing, for capabilities()
};

/// The tiers of this process. Thread-safe. COHORT_FORCE is a comma list of
/// epoll, legacy_clone, no_close_range, no_cgroup, pgid, no_pidfd_info, no_guardian, fork,
/// forkserver; it is ignored in set-user-ID programs.
const tiers& current_tiers();

/// Tries everything anew, without `forced` (a list as above). Has no lasting effect on the process.
tiers probe_tiers(std::string_view forced);

}  // namespace cohort::sys
