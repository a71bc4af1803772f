// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/signals_blocked.hpp"

#include <thread>
#include <utility>

namespace cohort::base {

/// Starts a thread that is never joined, with all signals blocked, because they are for the threads
/// of the user.
/// @throws std::system_error  the thread can't be started
template <class Body>
void start_quiet_thread(Body body) {
    const signals_blocked blocked;
    std::thread(std::move(body)).detach();
}

}  // namespace cohort::base
