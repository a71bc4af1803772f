// SPDX-License-Identifier: BSL-1.0
#include "base/text/text.hpp"

#include <cohort/launchers.hpp>

namespace cohort {

slurm_launcher::slurm_launcher() { settings().by = detail::slurm_launch(); }

ssh_launcher::ssh_launcher(std::vector<std::string> hosts) { settings().set_ssh(std::move(hosts)); }

slurm_launcher slurm() { return {}; }

std::string shell_quoted(const std::vector<std::string>& words) {
    for (const auto& word : words)
        detail::require_no_nul(word, "a word for a shell");
    return base::shell_line(words);
}

}  // namespace cohort
