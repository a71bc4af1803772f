// SPDX-License-Identifier: BSL-1.0
#include <cohort/sharing.hpp>

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>
#include <utility>

namespace cohort {

namespace {
constexpr std::size_t longest_name = 200;
}

share_options& share_options::name(std::string name) {
    const bool is_dots = name == "." || name == "..";
    if (name.empty() || is_dots || name.size() > longest_name ||
        name.find_first_of(std::string_view("/\0", 2)) != name.npos)
        throw std::invalid_argument(
            fmt::format("cohort: \"{}\" can't be a name of shared memory: 1 to {} bytes, no '/'",
                        name.substr(0, longest_name), longest_name));
    name_ = std::move(name);
    strategy_ = sharing_strategy::file_system;
    return *this;
}

}  // namespace cohort
