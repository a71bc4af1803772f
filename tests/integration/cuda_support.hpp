// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "reporter.hpp"
#include "standin.hpp"

#include <cohort/cuda.hpp>

/// A GROUP_TEST that uses devices: skipped where there are none. The driver keeps what it has opened
/// at its first use, so that comes before the guard, and so does a fork server.
#define CUDA_TEST(title) COHORT_CUDA_TEST(title, DOCTEST_ANONYMOUS(cuda_test_body_))
#define COHORT_CUDA_TEST(title, body)                                                              \
    static asio::awaitable<void> body(asio::any_io_executor executor);                             \
    TEST_CASE(title) {                                                                             \
        if (const auto why = ::cohort::cuda::why_not(); !why.empty())                              \
            return ::cohort::test::skip(why);                                                      \
        ::cohort::test::server();                                                                  \
        ::cohort::test::run_group_test(&body);                                                     \
    }                                                                                              \
    static asio::awaitable<void> body([[maybe_unused]] asio::any_io_executor executor)
