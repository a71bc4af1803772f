// SPDX-License-Identifier: BSL-1.0
#include "base/files/random.hpp"

#include "base/sys/descriptors.hpp"

#include <cerrno>
#include <system_error>

#include <sys/random.h>

namespace cohort::base {

std::uint64_t random_number() {
    std::uint64_t drawn = 0;
    while (::getrandom(&drawn, sizeof drawn, 0) != static_cast<ssize_t>(sizeof drawn))
        if (errno != EINTR)
            throw std::system_error(base::last_error(), "getrandom");
    return drawn;
}

}  // namespace cohort::base
