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

std::string workers_text(std::span<const int> indices) {
    constexpr int most_ranges = 8;
    std::string text = indices.size() == 1 ? "worker" : "workers";
    std::size_t at = 0;
    for (int ranges = 0; at < indices.size() && ranges < most_ranges; ++ranges) {
        const int first = indices[at];
        int last = first;
        for (++at; at < indices.size() && indices[at] == last + 1; ++at)
            ++last;
        text += fmt::format("{}{}", ranges == 0 ? " " : ", ", first);
        if (last > first)
            text += fmt::format(" to {}", last);
    }
    if (at < indices.size())
        text += fmt::format(" and {} more", indices.size() - at);
    return text;
}

}  // namespace cohort::base
