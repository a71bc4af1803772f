// SPDX-License-Identifier: BSL-1.0
#include "base/files/name.hpp"

#include "base/sys/descriptors.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <sys/random.h>

namespace cohort::base {

std::uint64_t random_number() {
    std::uint64_t drawn = 0;
    while (::getrandom(&drawn, sizeof drawn, 0) != static_cast<ssize_t>(sizeof drawn))
        if (errno != EINTR)
            throw std::system_error(base::last_error(), "getrandom");
    return drawn;
}

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
