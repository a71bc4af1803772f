// SPDX-License-Identifier: BSL-1.0
#include "process_locks.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace chaos {

void give_lock_file(cohort::options& how, int number) {
    const int file = ::memfd_create("locks", MFD_CLOEXEC);
    if (file < 0)
        throw std::system_error(errno, std::generic_category(), "memfd_create");
    how.fd(file, number);
    ::close(file);
}

bool lock_byte(int number, int at) {
    struct flock own {};
    own.l_type = F_WRLCK;
    own.l_whence = SEEK_SET;
    own.l_start = at;
    own.l_len = 1;
    return ::fcntl(number, F_SETLK, &own) == 0;
}

}  // namespace chaos
