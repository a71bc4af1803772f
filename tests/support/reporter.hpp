// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

namespace cohort::test {

/// Marks the current test case as skipped, visibly and with the reason; return from the case after
/// it.
void skip(const std::string& reason);

/// The name of the test case that runs now; empty between cases.
std::string current_case();

}  // namespace cohort::test
