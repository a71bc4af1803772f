// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/division.hpp"

namespace cohort::multihost {

std::vector<int> divide(int things, std::size_t hosts) {
    std::vector<int> each(hosts, 0);
    if (hosts == 0)
        return each;
    const auto count = static_cast<int>(hosts);
    for (int host = 0; host < count; ++host)
        each[static_cast<std::size_t>(host)] = things / count + (host < things % count ? 1 : 0);
    return each;
}

}  // namespace cohort::multihost
