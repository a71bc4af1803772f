// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cohort::base {

/// Whether the best way to serve a need works here, else why not. Empty `reason`: it works.
struct tier_choice {
    bool best = true;
    std::string reason;  // "clone3: Function not implemented", "forced by COHORT_FORCE"
};

/// What the kernel and its filters allow, tried once at first use, then fixed for the process.
/// EPERM, ENOSYS, EINVAL, E2BIG, ENOMEM and EMFILE all mean "not here".
struct tiers {
    // Not with COHORT_FORCE=epoll. Whether a ring works is the reactor's to find out.
    tier_choice io_uring_wanted;
    // clone3; else the legacy clone.
    tier_choice clone3;
    // CLOSE_RANGE_UNSHARE with a shared table; else a walk over /proc/self/fd.
    tier_choice close_range;
    // Not with COHORT_FORCE=no_cgroup. Whether this process can make a cgroup is for
    // start/cgroup/group_cgroups.hpp to find out.
    tier_choice cgroup_wanted;
    // PIDFD_SIGNAL_PROCESS_GROUP (Linux 6.9); else kill(-pgid).
    tier_choice pidfd_group;
    // PIDFD_GET_INFO with PIDFD_INFO_EXIT (Linux 6.15); else a stolen status is lost.
    tier_choice pidfd_info;
    // A guardian ends, after this process' death, what its workers started; else nothing does.
    // Without pidfd_group it finds their process groups by number.
    tier_choice guardian;
    // Not with COHORT_FORCE=no_file_system. Whether shared memory can have names here is for
    // base/files/named_file.hpp to find out.
    tier_choice names;
    // Replaces start_method::spawn of function workers (COHORT_FORCE=fork, forkserver).
    std::optional<start_method> functions;
    // Words of COHORT_FORCE that mean nothing, for capabilities().
    std::string unknown_forced;
};

/// The tiers of this process. Thread-safe. COHORT_FORCE is a comma list of
/// epoll, legacy_clone, no_close_range, no_cgroup, pgid, no_pidfd_info, no_guardian,
/// no_file_system, fork, forkserver; it is ignored in set-user-ID programs.
const tiers& current_tiers();

/// Whether this need is served in the best way here: is_best(&tiers::clone3). What acts by a tier
/// asks in this way, because the tests note what was asked (note_reached).
bool is_best(tier_choice tiers::*need);

/// What a case of the tests can reach that differs between hosts, beside the members of tiers.
enum class reached : std::uint8_t { functions = 32, fork, forkserver };
#ifdef COHORT_NOTE_REACHED
/// Sets a bit in the file that COHORT_TEST_REACHED names, of this process and of all that it
/// starts. tests/run makes that file, and knows by it which cases can differ on other tiers.
void note_reached(reached what) noexcept;
#else
inline void note_reached(reached) noexcept {}
#endif

/// Tries everything anew, except what `forced` rules out (a list as in COHORT_FORCE). Has no
/// lasting effect on the process.
tiers probe_tiers(std::string_view forced);

}  // namespace cohort::base
