// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <vector>

#include <sys/types.h>

namespace cohort::sys {

/// The users and groups that this process runs as, see credentials(7). A process that it started
/// has the same ones only while the credentials of then and of now compare equal.
struct credentials {
    uid_t users[3] = {};  // real, effective, saved
    gid_t groups[3] = {};
    std::vector<gid_t> supplementary;

    static credentials now();
    /// Whether real, effective and saved id are the same, of the user and of the group. In a
    /// set-user-ID program they differ.
    bool uniform() const noexcept;
    bool operator==(const credentials&) const = default;
};

}  // namespace cohort::sys
