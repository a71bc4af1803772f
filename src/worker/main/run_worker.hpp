// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/registry/mark.hpp"

namespace cohort::worker {

/// Runs the worker whose control file `control` names: its function, found in this program, with
/// the arguments that stand in a file of their own.
[[noreturn]] void run_worker(const protocol::mark& control);

}  // namespace cohort::worker
