// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <thread>
#include <utility>

#include <csignal>

namespace cohort::base {

/// Starts a thread that is never joined, with all signals blocked, because they are for the threads
/// of the user.
/// @throws std::system_error  the thread can't be started
template <class Body>
void start_quiet_thread(Body body) {
    sigset_t before;
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    try {
        std::thread(std::move(body)).detach();
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace cohort::base
