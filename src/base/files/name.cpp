// SPDX-License-Identifier: BSL-1.0
#include "base/files/name.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <string_view>

namespace cohort::base {
namespace {

constexpr std::size_t longest_name = 200;

}  // namespace

bool is_name(const std::string& name) noexcept {
    return !name.empty() && name != "." && name != ".." && name.size() <= longest_name &&
           name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

void check_name(const std::string& name) {
    if (!is_name(name))
        throw std::invalid_argument(
            fmt::format("cohort: \"{}\" can't be a name of shared memory: 1 to {} bytes, no '/'",
                        name.substr(0, longest_name), longest_name));
}

}  // namespace cohort::base
