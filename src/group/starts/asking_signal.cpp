// SPDX-License-Identifier: BSL-1.0
#include "group/starts/asking_signal.hpp"

#include <csignal>

namespace cohort::groups {

int asking_signal(const detail::group_settings& settings) noexcept {
    int signo = SIGRTMAX;
    while (signo == settings.stop_signal || signo == settings.parent_death_signal)
        --signo;
    return signo;
}

}  // namespace cohort::groups
