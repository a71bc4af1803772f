// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "procfs.hpp"
#include "reporter.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <cerrno>
#include <set>
#include <string>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

namespace cohort::test {

/// Whether groups have leaves here; else says why not.
inline bool has_cgroups() {
    const auto tree = cohort::capabilities().tree;
    if (tree.tier.rfind("cgroup", 0) == 0)
        return true;
    skip(tree.reason);
    return false;
}

/// A cgroup of the case, removed with it.
class scratch_cgroup {
public:
    explicit scratch_cgroup(const std::string& parent = own_cgroup())
        : path_(parent + "/test-cohort-" + std::to_string(::getpid()) + "-" +
                std::to_string(++made_)) {
        if (::mkdir(path_.c_str(), 0755) != 0)
            throw std::system_error(errno, std::generic_category(), path_);
    }
    scratch_cgroup(const scratch_cgroup&) = delete;
    scratch_cgroup& operator=(const scratch_cgroup&) = delete;
    ~scratch_cgroup() { CHECK(::rmdir(path_.c_str()) == 0); }
    const std::string& path() const noexcept { return path_; }
    std::set<std::string> group_cgroups() const { return leaves_in(path_); }

private:
    static inline int made_ = 0;  // a place is looked into once a second: each has its own
    std::string path_;
};

}  // namespace cohort::test
