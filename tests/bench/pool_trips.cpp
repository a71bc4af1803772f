// SPDX-License-Identifier: BSL-1.0
// Calls by cohort's pool, awaited one after the other or many at a time; and by a process for each.
#include "trips.hpp"

#include "asio_ticker.hpp"
#include "echo.hpp"
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <exception>
#include <string>
#include <utility>

namespace bench {
namespace {

std::string echo_in_group(int, const std::string& value) { return value; }

asio::awaitable<void> await_calls(const trips& todo, std::vector<double>& us) {
    using clock = std::chrono::steady_clock;
    auto pool = co_await cohort::start_pool(1);
    std::string value(todo.bytes, 'x');
    for (int i = 0; i < todo.all(); ++i) {
        const auto before = clock::now();
        value = co_await pool.submit(cohort::task<echo>(std::move(value)));
        if (i >= todo.warm_up())
            us.push_back(std::chrono::duration<double, std::micro>(clock::now() - before).count());
    }
    co_await pool.stop();
}

asio::awaitable<void> await_groups(const trips& todo, std::vector<double>& us) {
    using clock = std::chrono::steady_clock;
    const auto one = cohort::options(1).start_method(cohort::start_method::forkserver);
    std::string value(todo.bytes, 'x');
    for (int i = 0; i < todo.all(); ++i) {
        const auto before = clock::now();
        auto work = cohort::function<echo_in_group>(std::move(value));
        const auto report = co_await cohort::run(std::move(work), one);
        value = report.outcomes.front().result<std::string>();
        if (i >= todo.warm_up())
            us.push_back(std::chrono::duration<double, std::micro>(clock::now() - before).count());
    }
}

asio::awaitable<void> call_in_turn(cohort::pool& pool, int& left) {
    while (left-- > 0)
        co_await pool.submit(cohort::task<echo>(std::string(sizeof(ball), 'x')));
}

void make_calls(cohort::pool& pool, asio::io_context& io, int calls, int in_flight) {
    for (int i = 0; i < in_flight; ++i)
        asio::co_spawn(io, call_in_turn(pool, calls), [](std::exception_ptr error) {
            if (error)
                std::rethrow_exception(error);
        });
    io.restart();
    io.run();
}

}  // namespace

std::vector<double> trips_of_pool(const trips& todo) {
    std::vector<double> us;
    run_beside(nullptr, await_calls(todo, us));
    return us;
}

std::vector<double> trips_of_processes(const trips& todo) {
    std::vector<double> us;
    run_beside(nullptr, await_groups(todo, us));
    return us;
}

void pool_rate(const arguments& words) {
    const int workers = words.number("workers");
    const int calls = words.number("calls");
    asio::io_context io(1);
    cohort::pool pool;
    cohort::async_start_pool(io, cohort::pool_options(workers).at_least(workers),
                             [&](std::exception_ptr error, cohort::pool started) {
                                 if (error)
                                     std::rethrow_exception(error);
                                 pool = std::move(started);
                             });
    io.run();
    make_calls(pool, io, calls / 10, words.number("in_flight"));
    rate speed;
    speed.begin();
    make_calls(pool, io, calls, words.number("in_flight"));
    fmt::print("{{\"us\": {}}}\n", 1e6 / speed.of(calls));
}

}  // namespace bench
