// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/output.hpp>

#include <string>

namespace cohort::base {

/// The last lines that a worker wrote to stderr, for the text of an exception: at most 20 lines and
/// 4 KiB, only whole lines unless one alone is longer. Empty if nothing was captured. Takes a
/// bounded time, however much was captured.
/// @param from  what was captured of its stderr, or of its stdout if its stderr went there
std::string last_words(const captured& from);

}  // namespace cohort::base
