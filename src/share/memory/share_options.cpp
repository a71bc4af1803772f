// SPDX-License-Identifier: BSL-1.0
#include <cohort/sharing.hpp>

#include "base/files/name.hpp"

#include <utility>

namespace cohort {

share_options& share_options::name(std::string name) {
    base::check_name(name);
    name_ = std::move(name);
    strategy_ = sharing_strategy::file_system;
    return *this;
}

}  // namespace cohort
