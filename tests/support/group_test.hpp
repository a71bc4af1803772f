// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "guard.hpp"
#include "watchdog.hpp"

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/this_coro.hpp>

#include <doctest/doctest.h>

/// A test case that is a coroutine, under a leak guard and a watchdog:
///
///     GROUP_TEST("stop: the stop signal is SIGTERM") {
///         auto group = co_await cohort::spawn(...);
///     }
///
/// `executor` belongs to an io_context of the case's own, which runs on one thread. The case ends
/// when that context has no more work.
#define GROUP_TEST(title) COHORT_GROUP_TEST(title, DOCTEST_ANONYMOUS(group_test_body_))
#define COHORT_GROUP_TEST(title, body)                                                             \
    static asio::awaitable<void> body(asio::any_io_executor executor);                             \
    TEST_CASE(title) { ::cohort::test::run_group_test(&body); }                                    \
    static asio::awaitable<void> body([[maybe_unused]] asio::any_io_executor executor)

namespace cohort::test {

/// Runs a coroutine to its end, on an io_context of its own and this thread, under a watchdog;
/// rethrows its exception. Then runs the context until it has no more work.
void run_coroutine(asio::awaitable<void> body);
/// Runs a coroutine on a given context until the coroutine has ended.
/// @throws std::logic_error  the context had no more work before the coroutine's end
void run_coroutine(asio::io_context& context, asio::awaitable<void> body);

/// The body of GROUP_TEST.
void run_group_test(asio::awaitable<void> (*body)(asio::any_io_executor));

}  // namespace cohort::test
