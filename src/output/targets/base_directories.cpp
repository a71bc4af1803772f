// SPDX-License-Identifier: BSL-1.0
#include "output/targets/base_directories.hpp"

#include "output/targets/files.hpp"

namespace cohort::output {

const base_directory& base_directories::of(const std::string& working_directory,
                                           const std::string& path) {
    static const base_directory none;
    if (path.starts_with('/'))
        return none;
    auto [found, is_new] = opened_.try_emplace(working_directory);
    if (is_new)
        found->second.directory = std::make_shared<base::unique_fd>(
            open_base(caller_, working_directory, found->second.error));
    return found->second;
}

}  // namespace cohort::output
