// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

namespace cohort::base {

/// The name of this machine; "localhost" if it has none.
std::string host_name();

}  // namespace cohort::base
