// SPDX-License-Identifier: BSL-1.0
#include "output/routes/names.hpp"

#include "base/sys/host_name.hpp"
#include "output/routes/pattern.hpp"

#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include <sys/random.h>
#include <unistd.h>

namespace cohort::output {

namespace {

std::string random_letters() {
    constexpr std::size_t count = 8;
    unsigned char random[count] = {};
    (void)!::getrandom(random, sizeof random, 0);  // it can't fail for so few bytes
    std::string letters;
    for (const unsigned char each : random)
        letters += static_cast<char>('a' + each % 26);
    return letters;
}

}  // namespace

route_names names_for(std::string group) {
    std::error_code error;
    return {std::move(group), base::host_name(), random_letters(),
            std::filesystem::current_path(error).string()};
}

std::string run_id_of(const detail::log_settings& logs, const route_names& names) {
    pattern_values values;
    values.group = names.group;
    return logs.run_id.empty() ? expand("{group}", values) + "_" + names.random : logs.run_id;
}

}  // namespace cohort::output
