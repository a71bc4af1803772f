// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group_test.hpp"
#include "live_support.hpp"
#include "methods.hpp"
#include "start_support.hpp"

#include <cohort/cohort.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/steady_timer.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include <unistd.h>

// Tasks, and ways to see how their calls end.

/// GROUP_TEST for pools, whose workers come from the fork server, which stays.
#define POOL_TEST(title) COHORT_POOL_TEST(title, DOCTEST_ANONYMOUS(pool_test_body_))
#define COHORT_POOL_TEST(title, body)                                                              \
    static asio::awaitable<void> body(asio::any_io_executor executor);                             \
    TEST_CASE(title) {                                                                             \
        ::cohort::test::have_server();                                                             \
        ::cohort::test::run_group_test(&body);                                                     \
    }                                                                                              \
    static asio::awaitable<void> body([[maybe_unused]] asio::any_io_executor executor)

namespace cohort::test {

inline int add(int a, int b) { return a + b; }
inline std::string echoed(const std::string& text) { return text; }
inline int own_pid() { return ::getpid(); }
inline int own_slot() { return cohort::this_worker::index(); }
inline void return_nothing() {}
[[noreturn]] inline int throw_out_of_range(const std::string& text) {
    throw std::out_of_range(text);
}
[[noreturn]] inline int exit_with(int code) { std::exit(code); }
inline int die_by(int signo) {
    ::raise(signo);
    return signo;
}
/// Says that it runs, then sleeps for ever.
inline int hang_forever() {
    say_ready();
    for (;;)
        ::pause();
}
/// Says that it runs, and ends when the gate opens.
inline int wait_for_gate() {
    say_ready();
    char byte = 0;
    return ::read(gate::number, &byte, 1) == 0 ? ::getpid() : -1;
}

inline cohort::pool_options pool_of(int size) { return {size}; }

/// The exception of type E that an awaitable throws.
template <class E, class T>
asio::awaitable<E> failure_of(asio::awaitable<T> operation) {
    try {
        co_await std::move(operation);
    } catch (const E& error) {
        co_return error;
    }
    throw std::logic_error("nothing was thrown");
}

/// Whether an awaitable throws operation_aborted.
template <class T>
asio::awaitable<bool> is_aborted(asio::awaitable<T> operation) {
    try {
        co_await std::move(operation);
    } catch (const std::system_error& error) {
        co_return error.code() == asio::error::operation_aborted;
    }
    co_return false;
}

/// Waits until `holds` does, which has no event. Looks again later and later, because a look at all
/// processes takes the machine longer than most of them run.
template <class Condition>
asio::awaitable<void> until(asio::any_io_executor executor, Condition holds) {
    asio::steady_timer soon(executor);
    for (auto pause = std::chrono::milliseconds(1); !holds();
         pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
        soon.expires_after(pause);
        co_await soon.async_wait(asio::use_awaitable);
    }
}

}  // namespace cohort::test
