// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "procfs.hpp"

#include <fstream>
#include <string>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

namespace cohort::test {

/// Moves the calling process into a new cgroup of its own. path() is empty if that failed.
class own_cgroup_of_test {
public:
    explicit own_cgroup_of_test(std::string_view name) : before_(own_cgroup()) {
        const auto path = before_ + "/" + std::string(name) + "-" + std::to_string(::getpid());
        if (!before_.empty() && ::mkdir(path.c_str(), 0755) == 0)
            path_ = path;
        if (!path_.empty() && !enter(path_)) {
            ::rmdir(path_.c_str());
            path_.clear();
        }
    }
    own_cgroup_of_test(const own_cgroup_of_test&) = delete;
    own_cgroup_of_test& operator=(const own_cgroup_of_test&) = delete;
    ~own_cgroup_of_test() {
        if (!path_.empty() && enter(before_))
            ::rmdir(path_.c_str());
    }

    const std::string& path() const { return path_; }

private:
    static bool enter(const std::string& path) {
        std::ofstream procs(path + "/cgroup.procs");
        procs << ::getpid() << std::flush;
        return static_cast<bool>(procs);
    }

    const std::string before_;
    std::string path_;
};

}  // namespace cohort::test
