// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "methods.hpp"
#include "reporter.hpp"
#include "standin.hpp"

#include <cohort/cuda.hpp>

#include <csignal>
#include <numeric>
#include <vector>

/// A GROUP_TEST that uses devices: skipped where there are none. The driver keeps what it has
/// opened at its first use, so that comes before the guard, and so does a fork server.
#define CUDA_TEST(title) COHORT_CUDA_TEST(title, DOCTEST_ANONYMOUS(cuda_test_body_))
#define COHORT_CUDA_TEST(title, body)                                                              \
    static asio::awaitable<void> body(asio::any_io_executor executor);                             \
    TEST_CASE(title) {                                                                             \
        if (::cohort::test::default_method() == ::cohort::start_method::fork)                      \
            return ::cohort::test::skip(                                                           \
                "CUDA works in no forked copy, and all workers are copies");                       \
        if (const auto why = ::cohort::cuda::why_not(); !why.empty())                              \
            return ::cohort::test::skip(why);                                                      \
        ::cohort::test::server();                                                                  \
        ::cohort::test::run_group_test(&body);                                                     \
    }                                                                                              \
    static asio::awaitable<void> body([[maybe_unused]] asio::any_io_executor executor)

// What the cases of arrays on devices have in common.
namespace cohort::test {

inline std::vector<int> values_of(const cuda::shared_array<const int>& array) {
    std::vector<int> values(array.size());
    array.copy_to(values);
    return values;
}

inline cuda::shared_array<int> counted(int size) {
    cuda::shared_array<int> made(0, size);
    std::vector<int> values(made.size());
    std::iota(values.begin(), values.end(), 0);
    made.copy_from(values);
    return made;
}

inline void add_three(int, const cuda::shared_array<int>& array) {
    auto values = values_of(array);
    for (int& value : values)
        value += 3;
    array.copy_from(values);
}
inline void use_and_die(int, const cuda::shared_array<int>& array) {
    array.copy_from(std::vector<int>(array.size(), 8));
    std::raise(SIGKILL);
}

}  // namespace cohort::test
