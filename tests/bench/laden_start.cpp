// SPDX-License-Identifier: BSL-1.0
// Measures the time from the request for a worker to the inside of its function: with eight arrays
// and two queues as arguments, and without.
#include "asio_ticker.hpp"
#include "methods.hpp"
#include "programs/stamps.hpp"
#include "quantile.hpp"
#include "sections.hpp"
#include "trips.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

namespace bench {
namespace {

using arrays = std::vector<cohort::shared_array<float>>;

std::int64_t bare(int) { return now(); }
std::int64_t laden(int, const arrays&, const cohort::queue_reader<ball>&,
                   const cohort::queue_writer<ball>&) {
    return now();
}

struct results {
    std::vector<double> bare_us, laden_us;
};

template <class Function>
asio::awaitable<void> start(Function function, cohort::options how, std::vector<double>& us) {
    const auto asked = now();
    const auto report = co_await cohort::run(std::move(function), std::move(how));
    us.push_back(double(report.outcomes[0].template result<std::int64_t>() - asked) / 1000);
}

asio::awaitable<void> start_in_turn(cohort::options how, int runs, results& to) {
    arrays eight;
    for (int i = 0; i < 8; ++i)
        eight.emplace_back(1024);
    cohort::queue<ball> jobs, answers;
    for (int i = 0; i < runs + 2; ++i) {
        if (i == 2)
            to = {};  // the first runs make what is made only once: threads, the server
        co_await start(cohort::function<bare>(), how, to.bare_us);
        co_await start(cohort::function<laden>(eight, jobs, answers), how, to.laden_us);
    }
}

}  // namespace

void laden_start(const arguments& words) {
    results to;
    run_beside(nullptr,
               start_in_turn(cohort::options(1).start_method(method_of(words.text("method"))),
                             words.number("runs"), to));
    fmt::print("{{\"bare_us\": {}, \"laden_us\": {}}}\n", quantile(to.bare_us, 0.5),
               quantile(to.laden_us, 0.5));
}

}  // namespace bench
