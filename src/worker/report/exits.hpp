// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "worker/report/report.hpp"

namespace cohort::worker {

/// From now on the time at which this process calls exit, quick_exit, _exit or _Exit is recorded,
/// because the kernel closes its files, which others notice, before it tells of its end. exit first
/// calls the handlers that are registered later.
/// @source exit(3), _exit(2), which this library replaces as it does __cxa_throw
void report_exit(report& progress) noexcept;

}  // namespace cohort::worker
