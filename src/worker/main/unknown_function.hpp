// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/record/control.hpp"
#include "protocol/registry/registry.hpp"

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

}  // namespace cohort::worker
