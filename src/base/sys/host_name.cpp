// SPDX-License-Identifier: BSL-1.0
#include "base/sys/host_name.hpp"

#include <unistd.h>

std::string cohort::base::host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}
