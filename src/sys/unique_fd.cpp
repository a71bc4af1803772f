// SPDX-License-Identifier: BSL-1.0
#include "sys/unique_fd.hpp"

#include <cerrno>

#include <unistd.h>

namespace cohort::sys {

void unique_fd::reset(int fd) noexcept {
    const int old = std::exchange(fd_, fd);
    if (old < 0)
        return;
    const int saved = errno;
    // Not repeated after EINTR, because Linux has freed the number by then, close(2).
    ::close(old);
    errno = saved;
}

}  // namespace cohort::sys
