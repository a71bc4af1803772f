// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/registry/mark.hpp"

#include <cohort/detail/registration.hpp>

#include <functional>

namespace cohort::worker {

/// Runs `body` as the work of this worker: notes `entered`, then the result or the exception in the
/// control file, then leaves the process by exit(0) or exit(1). Call protocol::activate() before.
[[noreturn]] void run(const protocol::mark& control,
                      const std::function<detail::function_result()>& body);

}  // namespace cohort::worker
