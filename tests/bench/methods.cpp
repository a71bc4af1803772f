// SPDX-License-Identifier: BSL-1.0
// Measures the time from the request for a group to the inside of its functions, by start method.
#include "methods.hpp"
#include "parent.hpp"
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace bench {
namespace {

std::int64_t now_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::int64_t when_inside(int) { return now_ns(); }

/// Starts a group and waits for its end. @return microseconds until the last worker was inside
asio::awaitable<double> start_group(cohort::options how) {
    const auto asked = now_ns();
    const auto report = co_await cohort::run(cohort::function<when_inside>(), std::move(how));
    std::int64_t last = 0;
    for (const auto& worker : report.outcomes)
        last = std::max(last, worker.result<std::int64_t>());
    co_return static_cast<double>(last - asked) / 1000;
}

asio::awaitable<void> start_groups(cohort::options how, int runs, std::vector<double>& us) {
    (void)co_await start_group(how);  // makes what is made only once: threads, the server
    for (int i = 0; i < runs; ++i)
        us.push_back(co_await start_group(how));
}

}  // namespace

void methods(const arguments& words) {
    raise_descriptor_limit();
    touch_memory(static_cast<std::size_t>(words.number("memory", 0)) << 20);
    const int workers = words.number("workers");
    std::vector<double> us;
    asio::io_context context;
    asio::co_spawn(
        context,
        start_groups(cohort::options(workers).start_method(method_of(words.text("peer"))),
                     words.number("runs"), us),
        [](std::exception_ptr error) {
            if (error)
                std::rethrow_exception(error);
        });
    context.run();
    for (auto& each : us)
        each /= workers;
    fmt::print("{{\"us\": [{}]}}\n", fmt::join(us, ", "));
}

}  // namespace bench
