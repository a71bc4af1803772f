// SPDX-License-Identifier: BSL-1.0
#include "base/values/quantity.hpp"

#include <cstddef>

namespace cohort::base {

std::string with_separators(std::uint64_t count) {
    std::string text = std::to_string(count);
    for (std::size_t at = text.size(); at > 3;)
        text.insert(at -= 3, 1, ',');
    return text;
}

}  // namespace cohort::base
