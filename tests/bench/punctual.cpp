// SPDX-License-Identifier: BSL-1.0
// Measures how late join(50 ms) gives up, beside a group whose lines nobody reads.
#include "flood.hpp"
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr steady_clock::duration timeout = 50ms;
constexpr int at_once = 5;  // joins that wait at the same time, 10 ms apart

/// Runs `work` on `io` to its end.
void run_on(asio::io_context& io, std::vector<asio::awaitable<void>> work) {
    for (auto& each : work)
        asio::co_spawn(io, std::move(each), [](std::exception_ptr error) {
            if (error)
                std::rethrow_exception(error);
        });
    io.run();
    io.restart();
}

void run_on(asio::io_context& io, asio::awaitable<void> work) {
    std::vector<asio::awaitable<void>> one;
    one.push_back(std::move(work));
    run_on(io, std::move(one));
}

struct groups {
    cohort::group quiet, flood;
    steady_clock::time_point begun;
    double megabytes_s = 0;
};

asio::awaitable<void> start(groups& all, std::string pauses, std::string writer, int flooding) {
    all.quiet = co_await cohort::spawn(cohort::command(pauses), 1);
    all.begun = steady_clock::now();
    if (flooding > 0)
        all.flood = co_await start_flood(writer, flooding);
}

asio::awaitable<void> end(groups& all) {
    if (all.flood.valid()) {
        const double bytes = co_await stop_flood(all.flood);
        const std::chrono::duration<double> took = steady_clock::now() - all.begun;
        all.megabytes_s = bytes / took.count() / 1e6;
    }
    co_await all.quiet.stop();
}

asio::awaitable<void> join_often(cohort::group& quiet, steady_clock::duration after, int times,
                                 std::vector<double>& late_us) {
    asio::steady_timer first(co_await asio::this_coro::executor, after);
    co_await first.async_wait(asio::use_awaitable);
    for (int i = 0; i < times; ++i) {
        const auto before = steady_clock::now();
        const bool ended = co_await quiet.join(timeout);
        if (ended)
            throw std::runtime_error("the quiet worker has ended");
        const auto late = steady_clock::now() - before - timeout;
        late_us.push_back(std::chrono::duration<double, std::micro>(late).count());
    }
}

}  // namespace

void punctual(const arguments& words) {
    groups all;
    std::vector<double> late_us;
    asio::io_context io(1);
    run_on(io, start(all, words.text("pauses"), words.text("writer"), words.number("flooding")));
    std::vector<asio::awaitable<void>> joins;
    for (int i = 0; i < at_once; ++i)
        joins.push_back(
            join_often(all.quiet, i * timeout / at_once, words.number("joins") / at_once, late_us));
    run_on(io, std::move(joins));
    run_on(io, end(all));
    fmt::print("{{\"late_us\": [{}], \"mb_s\": {}}}\n", fmt::join(late_us, ", "), all.megabytes_s);
}

}  // namespace bench
