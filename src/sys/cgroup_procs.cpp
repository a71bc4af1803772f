// SPDX-License-Identifier: BSL-1.0
#include "sys/cgroup_procs.hpp"

#include "sys/descriptors.hpp"

#include <fcntl.h>

namespace cohort::sys {

unique_fd open_cgroup_procs(int directory, std::error_code& error) noexcept {
    return out_of_stdio(unique_fd(::openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC)),
                        error);
}

}  // namespace cohort::sys
