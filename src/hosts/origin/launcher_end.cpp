// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/launcher_end.hpp"

#include "base/values/last_words.hpp"

#include <cohort/exit_status.hpp>

namespace cohort::multihost {

std::string launcher_end::text() const {
    return has_status() ? "its launcher ended: " + to_string(last().left->status)
                        : "its launcher has ended";
}

std::string launcher_end::words() const {
    return has_status() ? base::last_words(last().err) : std::string();
}

}  // namespace cohort::multihost
