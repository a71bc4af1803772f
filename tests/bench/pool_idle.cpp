// SPDX-License-Identifier: BSL-1.0
// Measures what a pool costs that has nothing to do: how often threads of this process and of the
// workers wake, and their CPU time.
#include "asio_ticker.hpp"
#include "echo.hpp"
#include "sections.hpp"
#include "used.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <string>
#include <thread>

namespace bench {
namespace {

asio::awaitable<void> start_and_call(int workers, cohort::pool& pool) {
    const auto how = cohort::pool_options(workers).at_least(workers).memory_per_worker(1 << 30);
    pool = co_await cohort::start_pool(how);
    (void)co_await pool.submit(cohort::task<echo>("once"));
}

used used_by(const cohort::pool& pool) {
    used sum = used::now();
    for (const auto& worker : pool.workers())
        sum += used::now(std::to_string(worker.pid));
    return sum;
}

}  // namespace

void pool_idle(const arguments& words) {
    constexpr std::chrono::seconds until_it_is_idle{3};  // some threads end a second after a start
    const std::chrono::milliseconds idle(words.number("idle_ms"));
    cohort::pool pool;
    run_beside(nullptr, start_and_call(words.number("workers"), pool));
    std::this_thread::sleep_for(until_it_is_idle);
    const used before = used_by(pool);
    std::this_thread::sleep_for(idle);
    const used after = used_by(pool);
    fmt::print("{{\"wakes\": {}, \"cpu_ms\": {}}}\n", after.wakes - before.wakes,
               after.cpu_ms - before.cpu_ms);
}

}  // namespace bench
