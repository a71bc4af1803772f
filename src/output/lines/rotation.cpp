// SPDX-License-Identifier: BSL-1.0
#include "output/lines/rotation.hpp"

#include <algorithm>

namespace cohort::output {

std::size_t fitting_prefix(std::string_view lines, std::uint64_t room) noexcept {
    if (lines.size() <= room)
        return lines.size();
    const std::size_t newline = lines.substr(0, static_cast<std::size_t>(room)).rfind('\n');
    return newline == std::string_view::npos ? 0 : newline + 1;
}

std::size_t rotation::next_write(std::uint64_t size_now, std::string_view lines) const noexcept {
    const std::size_t fitting = fitting_prefix(lines, limit_ - std::min(limit_, size_now));
    if (fitting > 0 || size_now > 0)
        return fitting;
    const std::size_t newline = lines.find('\n');
    return newline == std::string_view::npos ? lines.size() : newline + 1;
}

std::string rotation::name(std::string_view path, int number) {
    return std::string(path) + (number > 0 ? "." + std::to_string(number) : "");
}

}  // namespace cohort::output
