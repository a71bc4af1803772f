// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <string_view>

namespace cohort::base {

/// The numbers of a range with a separator between them. Instead of fmt::join, because GCC 12 warns
/// of that at -O3.
template <class Numbers>
std::string joined(const Numbers& numbers, std::string_view separator) {
    std::string text;
    for (const auto& each : numbers) {
        if (!text.empty())
            text += separator;
        text += std::to_string(each);
    }
    return text;
}

}  // namespace cohort::base
