// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bench {

/// The value at quantile `part`, from 0 (the least) to 1 (the greatest); 0 if there is none.
inline double quantile(std::vector<double> all, double part) {
    if (all.empty())
        return 0;
    std::sort(all.begin(), all.end());
    return all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
}

}  // namespace bench
