// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/unique_fd.hpp"

#include <sys/stat.h>

namespace cohort::cgroups {

/// Tells of one cgroup whether another group may have it: whether nothing lives in it, and nothing is
/// left of what its workers did to it.
class reuse_check {
public:
    /// @param directory  of a cgroup that is new. It can't be told of one in which the kernel counts
    /// or limits anything.
    explicit reuse_check(int directory) noexcept;

    /// Whether it can be told.
    explicit operator bool() const noexcept { return static_cast<bool>(events_); }
    /// Nothing lives in it or below it, and it is neither frozen nor removed. Never blocks, because
    /// the kernel takes none of its locks on cgroups for this.
    bool is_empty() const noexcept;
    /// Nobody has made a cgroup in it, given it to another user, or had the kernel count or limit
    /// anything in it since. What is written to the files that every cgroup has is not seen.
    bool is_unchanged(int directory) const noexcept;

private:
    sys::unique_fd events_;
    struct stat as_new_ {};
};

}  // namespace cohort::cgroups
