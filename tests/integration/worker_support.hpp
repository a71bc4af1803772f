// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "pipes.hpp"

#include <cohort/group.hpp>
#include <cohort/worker.hpp>

#include <asio/awaitable.hpp>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <utility>

#include <unistd.h>

// Steps of worker functions, and a way to catch a group's failure.
namespace cohort::test {

[[noreturn]] inline void sleep_until_killed() {
    for (;;)
        ::pause();
}

/// Says that it is ready, by `say`, and waits until the group gets the signal `signo`.
template <class Say>
void wait_for_go(int signo, Say say) {
    sigset_t go;
    ::sigemptyset(&go);
    ::sigaddset(&go, signo);
    ::sigprocmask(SIG_BLOCK, &go, nullptr);
    say();
    int got = 0;
    ::sigwait(&go, &got);
}

inline void wait_for_go(int signo = SIGUSR1) {
    wait_for_go(signo, [] { say_ready(); });
}

inline void wait_on_token(std::stop_token token) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    stopped.wait(lock, std::move(token), [] { return false; });
}

/// Says that it is ready and waits until its stop token fires.
inline void wait_for_stop() {
    const auto token = cohort::this_worker::stop_token();
    say_ready();
    wait_on_token(token);
}

/// Says that it is ready and ignores the stop signal.
[[noreturn]] inline void ignore_stop() {
    std::signal(SIGTERM, SIG_IGN);
    say_ready();
    sleep_until_killed();
}

/// The exception of type E that a join of this group throws.
template <class E>
asio::awaitable<E> failure(cohort::group& group) {
    try {
        co_await group.join();
    } catch (const E& error) {
        co_return error;
    }
    throw std::logic_error("join did not throw");
}

}  // namespace cohort::test
