// SPDX-License-Identifier: BSL-1.0
#include "batch.hpp"

#include "reports.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace chaos {

namespace {

constexpr int places_number = 7;

}  // namespace

void give_places(cohort::options& how) {
    const int places = ::memfd_create("places", MFD_CLOEXEC);
    if (places < 0)
        throw std::system_error(errno, std::generic_category(), "memfd_create");
    how.fd(places, places_number);
    ::close(places);
}

void take_place(int places) {
    struct flock place {};
    place.l_type = F_WRLCK;
    place.l_whence = SEEK_SET;
    place.l_len = 1;
    // Such a lock stays over execve, is not inherited by children, and goes before the exit of its
    // process is told: fcntl(2).
    for (place.l_start = 0; place.l_start < places; ++place.l_start)
        if (::fcntl(places_number, F_SETLK, &place) == 0)
            return;
    tell_broken(fmt::format("more than {} workers of a batch live", places));
}

}  // namespace chaos
