// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "worker/report.hpp"

namespace cohort::worker {

/// SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT are told in the report, with the stack; then the
/// signal ends the worker, as it would have. Only those whose action is the default: a sanitizer's
/// handlers, and the program's, stay. The handler has a stack of its own on the calling thread,
/// unless that has one. For the rest of the process.
void report_crashes(report& to) noexcept;

}  // namespace cohort::worker
