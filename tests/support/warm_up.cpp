// SPDX-License-Identifier: BSL-1.0
// The first group of a process starts the library's threads and its reactor, which stay for ever.
// The first group of functions may start a fork server. The first wait for a queue adds a
// descriptor, the first pipe of a worker a thread with a reactor.
#include "group_test.hpp"

#include <cohort/function.hpp>
#include <cohort/queue.hpp>
#include <cohort/sinks.hpp>
#include <cohort/spawn.hpp>

#include <asio/experimental/awaitable_operators.hpp>

#include <utility>

namespace {

using namespace asio::experimental::awaitable_operators;

void nothing(int) {}

asio::awaitable<void> close(cohort::queue<int> given) {
    given.close();
    co_return;
}

asio::awaitable<void> run_one_group() {
    const auto printing = cohort::options(1).name("warm-up").stdout_to(cohort::capture());
    (void)co_await cohort::run(cohort::function<nothing>(), printing);
    cohort::queue<int> empty;
    co_await (empty.get() && close(empty));
}

void warm_up() { cohort::test::run_coroutine(run_one_group()); }

const bool registered = cohort::test::set_warm_up(&warm_up);

}  // namespace
