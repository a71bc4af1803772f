// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <vector>

#include <sys/types.h>

namespace cohort::base {

/// The users that this process runs as. They decide whom it may signal, see kill(2); groups do not.
struct user_ids {
    uid_t real = 0;
    uid_t effective = 0;
    uid_t saved = 0;

    static user_ids now() noexcept;
    bool operator==(const user_ids&) const = default;
};

/// Whether this thread may send signals to a process whose ids are all `user`, see kill(2).
bool may_signal(uid_t user) noexcept;

/// The users and groups that this process runs as, see credentials(7). A process that it started
/// has the same ones only while the credentials of then and of now compare equal.
struct credentials {
    user_ids user;
    gid_t groups[3] = {};  // real, effective, saved
    std::vector<gid_t> supplementary;

    static credentials now();
    /// Whether real, effective and saved id are the same, of the user and of the group. In a
    /// set-user-ID program they differ.
    bool uniform() const noexcept;
    bool operator==(const credentials&) const = default;
};

}  // namespace cohort::base
