// SPDX-License-Identifier: BSL-1.0
#include "base/sys/cgroup_procs.hpp"

#include "base/sys/descriptors.hpp"

#include <fcntl.h>

namespace cohort::base {

unique_fd open_cgroup_procs(int directory, std::error_code& error) noexcept {
    return out_of_stdio(unique_fd(::openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC)),
                        error);
}

}  // namespace cohort::base
