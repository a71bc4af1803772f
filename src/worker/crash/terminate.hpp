// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "worker/report/report.hpp"

namespace cohort::worker {

/// From now on, until the process ends, a call of std::terminate is written to the report, with the
/// exception that led to it and its stack. Then the handler that the program had set runs.
void report_terminate(report& to) noexcept;

}  // namespace cohort::worker
