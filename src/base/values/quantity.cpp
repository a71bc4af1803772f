// SPDX-License-Identifier: BSL-1.0
#include "base/values/quantity.hpp"

#include <fmt/format.h>

#include <cstddef>

namespace cohort::base {

std::string with_separators(std::uint64_t count) {
    std::string text = std::to_string(count);
    for (std::size_t at = text.size(); at > 3;)
        text.insert(at -= 3, 1, ',');
    return text;
}

std::string duration_text(std::chrono::steady_clock::duration length) {
    using namespace std::chrono_literals;
    const auto in = [&](std::chrono::steady_clock::duration unit, const char* name) {
        return fmt::format("{:g} {}",
                           static_cast<double>(length.count()) / static_cast<double>(unit.count()),
                           name);
    };
    if (length >= 1s || length == 0s)
        return in(1s, "s");
    if (length >= 1ms)
        return in(1ms, "ms");
    return length >= 1us ? in(1us, "us") : in(1ns, "ns");
}

}  // namespace cohort::base
