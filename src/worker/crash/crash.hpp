// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "worker/report/report.hpp"

namespace cohort::worker {

/// From now on, until the process ends, SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT are written to
/// the report, with the stack; then the signal ends the worker, as it would have without this. Only
/// signals with the default action: the handlers of a sanitizer and of the program stay. On the
/// calling thread the handler gets a signal stack, unless the thread has one.
void report_crashes(report& to) noexcept;

}  // namespace cohort::worker
