// SPDX-License-Identifier: BSL-1.0
// Measures the time to start functions and to join their group, on hosts whose agents are there.
#include "asio_ticker.hpp"
#include "local_hosts.hpp"
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <chrono>
#include <vector>

namespace bench {
namespace {

void end_at_once(int) {}

asio::awaitable<void> start_and_join(place at, int workers, int runs, std::vector<double>& us) {
    co_await at.reach();
    const auto how = at.options_of(workers);
    (void)co_await cohort::run(cohort::function<end_at_once>(), how);  // makes what is made once
    for (int i = 0; i < runs; ++i) {
        const auto begun = std::chrono::steady_clock::now();
        auto group = co_await cohort::spawn(cohort::function<end_at_once>(), how);
        co_await group.join();
        const auto took = std::chrono::steady_clock::now() - begun;
        us.push_back(std::chrono::duration<double, std::micro>(took).count());
    }
    co_await at.leave();
}

}  // namespace

void hosts_start(const arguments& words) {
    std::vector<double> us;
    run_beside(nullptr, start_and_join(place(words.number("hosts")), words.number("workers"),
                                       words.number("runs"), us));
    fmt::print("{{\"us\": [{}]}}\n", fmt::join(us, ", "));
}

}  // namespace bench
