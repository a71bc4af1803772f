// SPDX-License-Identifier: BSL-1.0
#include "routes/names.hpp"

#include <cstddef>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace cohort::output {

namespace {

std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::string random_letters() {
    constexpr std::size_t count = 8;
    std::random_device device;
    std::uniform_int_distribution<int> letter('a', 'z');
    std::string letters;
    while (letters.size() < count)
        letters += static_cast<char>(letter(device));
    return letters;
}

}  // namespace

route_names names_for(std::string group) {
    std::error_code error;
    return {std::move(group), host_name(), random_letters(),
            std::filesystem::current_path(error).string()};
}

}  // namespace cohort::output
