// SPDX-License-Identifier: BSL-1.0
// The first group of a process starts the library's threads and its reactor, which stay for ever.
// The first group of functions may start a fork server.
#include "group_test.hpp"

#include <cohort/function.hpp>
#include <cohort/spawn.hpp>

#include <utility>

namespace {

void nothing(int) {}

asio::awaitable<void> run_one_group() {
    (void)co_await cohort::run(cohort::function<nothing>(), 1);
}

void warm_up() { cohort::test::run_coroutine(run_one_group()); }

const bool registered = cohort::test::set_warm_up(&warm_up);

}  // namespace
