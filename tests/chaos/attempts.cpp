// SPDX-License-Identifier: BSL-1.0
#include "attempts.hpp"

#include "reports.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace chaos {

namespace {

constexpr int locks_number = 6;

}  // namespace

void give_locks(cohort::options& how) {
    const int locks = ::memfd_create("locks", MFD_CLOEXEC);
    if (locks < 0)
        throw std::system_error(errno, std::generic_category(), "memfd_create");
    how.fd(locks, locks_number);
    ::close(locks);
}

void lock_index(int index) {
    struct flock own {};
    own.l_type = F_WRLCK;
    own.l_whence = SEEK_SET;
    own.l_start = index;
    own.l_len = 1;
    // Lives as long as the process, also over execve, see take_place().
    if (::fcntl(locks_number, F_SETLK, &own) != 0)
        tell_broken(fmt::format("worker {} starts again while its last attempt lives", index));
}

}  // namespace chaos
