// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/record/control.hpp"
#include "protocol/registry/mark.hpp"
#include "protocol/registry/registry.hpp"

#include <cohort/detail/registration.hpp>

#include <functional>
#include <stdexcept>

namespace cohort::worker {

/// The error that is recorded when the program does not contain the worker's function.
class unknown_function : public std::runtime_error {
public:
    explicit unknown_function(const protocol::function_key& key)
        : std::runtime_error(
              protocol::is_named(key)
                  ? "the program of executable() does not have the worker's function, or has two "
                    "of its name: make a work of it in that program, as function<...>(...)"
                  : "the function of this worker is not in the program: it may be in a library "
                    "that was opened with dlopen, or the program was replaced after it had "
                    "started") {}
};

/// Runs `body` as the work of this worker: notes `entered`, then the result or the exception in the
/// control file, then leaves the process by exit(0) or exit(1). Call protocol::activate() before.
[[noreturn]] void run(const protocol::mark& control,
                      const std::function<detail::function_result()>& body);

/// Runs a worker that is a copy of its parent. Output that the parent had not yet written is
/// dropped, because the parent will write it. When the worker calls exit, anywhere, the hooks and
/// destructors that it has registered itself run, not those that it was copied with.
[[noreturn]] void run_as_copy(const protocol::control_order& order, const protocol::mark& control,
                              const std::function<detail::function_result()>& body);

/// Runs the worker whose control file `control` names: its function, found in this program, with
/// the arguments that stand in a file of their own.
[[noreturn]] void run_worker(const protocol::mark& control);

}  // namespace cohort::worker
