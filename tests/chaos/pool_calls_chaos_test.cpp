// SPDX-License-Identifier: BSL-1.0
// 100,000 calls of a pool. Every hundredth ends its worker: exactly these fail.
#include "guard.hpp"
#include "pool_support.hpp"
#include "sanitizers.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

namespace pool_calls_chaos_test {

using cohort::task;
using cohort::test::under_asan;
using cohort::test::under_tsan;

namespace {

constexpr int calls = under_asan || under_tsan ? 10'000 : 100'000;
constexpr int in_flight = 16;
constexpr int workers = 3;
constexpr std::array deadly{SIGSEGV, SIGKILL, SIGABRT, 0};

int next_of(int number) { return number + 1; }
std::string echo(const std::string& text) { return text; }
[[noreturn]] int throw_number(int number) { throw std::out_of_range(std::to_string(number)); }
int end_by(int signo) {
    if (signo == 0)
        std::exit(3);
    ::raise(signo);
    return 0;
}

struct seen {
    int right = 0;  // calls with the value or the exception that they should have
    std::array<int, deadly.size()> ended{};
    int most_workers = 0;
    cohort::pool_stats stats;
};

asio::awaitable<void> await_end(cohort::pool& pool, int number, seen& all) {
    const auto which = static_cast<std::size_t>(number / 100) % deadly.size();
    const int signo = deadly.at(which);
    try {
        co_await pool.submit(task<end_by>(signo));
    } catch (const cohort::process_exited_exception& error) {
        const bool crashes = signo == SIGSEGV || signo == SIGABRT;
        const bool has_crash = error.failed().crash.has_value();
        const bool is_it = error.exit_code() == (signo == 0 ? 3 : -signo);
        all.ended.at(which) += is_it && (under_asan || has_crash == crashes) ? 1 : 0;
    }
}

asio::awaitable<void> call(cohort::pool& pool, int number, seen& all) {
    if (number % 100 == 99) {
        co_await await_end(pool, number, all);
    } else if (number % 3 == 0) {
        all.right += co_await pool.submit(task<next_of>(number)) == number + 1 ? 1 : 0;
    } else if (number % 3 == 1) {
        const std::string text(static_cast<std::size_t>(number % 5000), 'x');
        all.right += co_await pool.submit(task<echo>(text)) == text ? 1 : 0;
    } else {
        try {
            co_await pool.submit(task<throw_number>(number));
        } catch (const cohort::process_raised_exception& error) {
            all.right += error.error().message == std::to_string(number) ? 1 : 0;
        }
    }
}

asio::awaitable<void> call_in_turn(cohort::pool& pool, int& next, seen& all) {
    while (next < calls) {
        co_await call(pool, next++, all);
        all.most_workers = std::max(all.most_workers, pool.stats().size);
    }
}

asio::awaitable<void> make_calls(seen& all) {
    auto pool = co_await cohort::start_pool(workers);
    const auto executor = co_await asio::this_coro::executor;
    asio::steady_timer all_have_ended(executor, asio::steady_timer::time_point::max());
    int next = 0;
    int callers = in_flight;
    std::exception_ptr failure;
    for (int i = 0; i < in_flight; ++i)
        asio::co_spawn(executor, call_in_turn(pool, next, all), [&](std::exception_ptr error) {
            if (error)
                failure = error;
            if (--callers == 0)
                all_have_ended.cancel();
        });
    asio::error_code cancelled;
    co_await all_have_ended.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    if (failure)
        std::rethrow_exception(failure);
    all.stats = pool.stats();
    co_await pool.stop();
}

}  // namespace

TEST_CASE("pool calls chaos: of 100,000 calls just those fail that throw or end their worker") {
    { const cohort::test::leak_guard first_of_all; }  // makes what stays for ever
    chaos::run_out(chaos::start_server());
    const cohort::test::leak_guard guard;
    seen all;
    chaos::run_out(make_calls(all));
    CHECK(all.right == calls - calls / 100);
    for (const int ended : all.ended)
        CHECK(ended == calls / 100 / static_cast<int>(deadly.size()));
    CHECK(all.stats.lost == calls / 100);
    CHECK(all.stats.done == calls - calls / 100);
    CHECK(all.most_workers <= workers);
}

}  // namespace pool_calls_chaos_test
