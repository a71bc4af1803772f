// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "pool/dispatch/dispatcher.hpp"
#include "pool/link/worker_link.hpp"

#include <cohort/detail/queue_message.hpp>
#include <cohort/outcome.hpp>

#include <exception>
#include <memory>
#include <string>

#include <sys/types.h>

namespace cohort::pools {

/// How a call of a pool has ended, in parts, because the engine's thread makes no exceptions and
/// decodes nothing.
struct ended_call {
    call_end how = call_end::answered;
    int slot = -1;
    pid_t pid = 0;
    const char* function = nullptr;         // its name as in function_node
    duration limit{};                       // that it has reached
    bool has_thrown = false;                // the task, if it was answered
    detail::queue_message answer;           // as it came
    std::shared_ptr<const outcome> raised;  // set: what the task has thrown
    std::exception_ptr error;               // set: the call could not be sent
    worker_link::end worker;                // if it died, or the last one if the pool is broken
    int attempts = 0;                       // if the pool is broken
};

/// What a task has thrown, as an outcome of its worker, which lives on. Parses what was sent: not
/// on the engine's thread.
std::shared_ptr<const outcome> sent_error(const ended_call& call);

}  // namespace cohort::pools
