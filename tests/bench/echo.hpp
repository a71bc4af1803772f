// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

namespace bench {

/// The task of a worker that gives back what it gets.
inline std::string echo(const std::string& value) { return value; }

}  // namespace bench
