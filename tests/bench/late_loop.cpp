// SPDX-License-Identifier: BSL-1.0
// Measures how late a ticker is on a loop that awaits large values by queue.
#include "asio_ticker.hpp"
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace bench {
namespace {

using cohort::queue;

void answer(int, cohort::queue_reader<std::string> from, cohort::queue_writer<std::string> to) {
    for (std::string& each : from)
        to.put(std::move(each));
}

asio::awaitable<void> pass(queue<std::string> there, queue<std::string> back, int trips,
                           std::string& value) {
    for (int i = 0; i < trips; ++i) {
        co_await there.put(std::move(value));
        auto got = co_await back.get();
        value = std::move(*got);
    }
}

using worker = std::optional<cohort::group>;

asio::awaitable<void> start(queue<std::string> there, queue<std::string> back, worker& one) {
    one = co_await cohort::spawn(cohort::function<answer>(there, back), 1);
}

asio::awaitable<void> end(worker& one) { co_await one->join(); }

/// The ticker does not run while the value is made, and the worker starts or ends.
void with_cohort(ticker& clock, std::size_t bytes, int trips) {
    queue<std::string> there, back;
    worker one;
    std::string value(bytes, 'x');
    run_beside(nullptr, start(there, back, one));
    run_beside(nullptr, pass(there, back, 1, value));
    run_beside(&clock, pass(there, back, trips, value));
    there.close();
    run_beside(nullptr, end(one));
}

asio::awaitable<void> rest(int ms) {
    asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(ms));
    co_await timer.async_wait(asio::use_awaitable);
}

}  // namespace

void late_loop(const arguments& words) {
    ticker clock;
    if (words.text("peer") == "cohort")
        with_cohort(clock, static_cast<std::size_t>(words.number("bytes")), words.number("trips"));
    else
        run_beside(&clock, rest(words.number("ms")));
    fmt::print("{{\"late_us\": {}, \"late_p99_us\": {}}}\n", clock.lateness(1),
               clock.lateness(0.99));
}

}  // namespace bench
