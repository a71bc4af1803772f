// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <vector>

#include <sys/types.h>

namespace cohort::sys {

/// As whom this process runs, see credentials(7): what a process that it once started has in common
/// with it only while they compare equal.
struct credentials {
    uid_t users[3] = {};  // real, effective, saved
    gid_t groups[3] = {};
    std::vector<gid_t> supplementary;

    static credentials now();
    /// Neither of the two real ones differs from the others, as in a set-user-ID program.
    bool uniform() const noexcept;
    bool operator==(const credentials&) const = default;
};

}  // namespace cohort::sys
