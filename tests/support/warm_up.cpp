// SPDX-License-Identifier: BSL-1.0
// The first group of a process starts the library's threads and its reactor, which stay for ever.
#include "async.hpp"
#include "guard.hpp"

#include <cohort/command.hpp>
#include <cohort/spawn.hpp>

#include <utility>

namespace {

asio::awaitable<void> run_one_group() { (void)co_await cohort::run(cohort::command("true"), 1); }

void warm_up() { cohort_test::run_coroutine(run_one_group()); }

const bool registered = cohort_test::set_warm_up(&warm_up);

}  // namespace
