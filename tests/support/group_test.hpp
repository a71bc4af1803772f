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
/// `executor` is that of the case: an io_context of its own, which runs on one thread. The case
/// ends when nothing is pending there.
#define GROUP_TEST(title) COHORT_GROUP_TEST(title, DOCTEST_ANONYMOUS(group_test_body_))
#define COHORT_GROUP_TEST(title, body)                                                             \
    static asio::awaitable<void> body(asio::any_io_executor executor);                             \
    TEST_CASE(title) { ::cohort::test::run_group_test(&body); }                                    \
    static asio::awaitable<void> body([[maybe_unused]] asio::any_io_executor executor)

namespace cohort::test {

/// Runs a coroutine to its end, on an io_context of its own and this thread, under a watchdog;
/// rethrows what leaves it. Then runs what is still pending in the context.
void run_coroutine(asio::awaitable<void> body);
/// The same on a given context: until the coroutine has ended, or the context has no more work.
/// @throws std::logic_error  the context ran out of work before the coroutine's end: it waits for
/// nothing
void run_coroutine(asio::io_context& context, asio::awaitable<void> body);

/// What GROUP_TEST does.
void run_group_test(asio::awaitable<void> (*body)(asio::any_io_executor));

}  // namespace cohort::test
