// SPDX-License-Identifier: BSL-1.0
// Measures the time from a worker's crash to its caller's exception, and to the inside of what is
// called next: in a pool, where that waits for the next worker, and in groups of one worker.
#include "asio_ticker.hpp"
#include "programs/stamps.hpp"
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <csignal>
#include <exception>
#include <stdexcept>
#include <vector>

namespace bench {
namespace {

using stamp = cohort::shared_array<std::int64_t>;

void die(const stamp& at, int signal) {
    at(0) = now();
    std::raise(signal);
}
void die_in_group(int, const stamp& at, int signal) { die(at, signal); }
std::int64_t when_called() { return now(); }
std::int64_t when_called_in_group(int) { return now(); }

/// Times in microseconds, one value a run.
struct crash_times {
    std::vector<double> told, next;

    void add(std::int64_t died, std::int64_t heard, std::int64_t called) {
        if (died == 0 || heard == 0)
            throw std::runtime_error("a worker has not died, or nobody was told");
        told.push_back(double(heard - died) / 1000);
        next.push_back(double(called - died) / 1000);
    }
};

asio::awaitable<void> crash_in_pool(int runs, int signal, crash_times& to) {
    const stamp at(1);
    auto pool = co_await cohort::start_pool(1);
    for (int i = 0; i < runs; ++i) {
        // A worker that has ended a task may die without a pause before the next start.
        (void)co_await pool.submit(cohort::task<when_called>());
        at(0) = 0;
        std::int64_t heard = 0;
        auto hear = [&heard](std::exception_ptr error) { heard = error ? now() : 0; };
        pool.async_submit(cohort::task<die>(at, signal), hear);
        const auto called = co_await pool.submit(cohort::task<when_called>());
        to.add(at(0), heard, called);
    }
    co_await pool.stop();
}

asio::awaitable<void> crash_in_group(int runs, int signal, crash_times& to) {
    const stamp at(1);
    const auto one = cohort::options(1).start_method(cohort::start_method::forkserver);
    for (int i = 0; i < runs; ++i) {
        at(0) = 0;
        std::int64_t heard = 0;
        auto group = co_await cohort::spawn(cohort::function<die_in_group>(at, signal), one);
        try {
            co_await group.join();
        } catch (const cohort::process_exited_exception&) {
            heard = now();
        }
        const auto report = co_await cohort::run(cohort::function<when_called_in_group>(), one);
        to.add(at(0), heard, report.outcomes.front().result<std::int64_t>());
    }
}

}  // namespace

void pool_crash(const arguments& words) {
    const int runs = words.number("runs");
    const int signal = words.number("signal");
    crash_times to;
    if (words.text("peer") == "pool")
        run_beside(nullptr, crash_in_pool(runs, signal, to));
    else
        run_beside(nullptr, crash_in_group(runs, signal, to));
    fmt::print("{{\"told_us\": [{}], \"next_us\": [{}]}}\n", fmt::join(to.told, ", "),
               fmt::join(to.next, ", "));
}

}  // namespace bench
