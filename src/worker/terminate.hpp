// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "worker/report.hpp"

namespace cohort::worker {

/// std::terminate is told in the report, with the exception that led to it and its stack; then
/// whatever handler the program had set runs. For the rest of the process.
void report_terminate(report& to) noexcept;

}  // namespace cohort::worker
