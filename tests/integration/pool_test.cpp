// SPDX-License-Identifier: BSL-1.0
// Calls that pools make: their arguments, their values, where they run.
#include "pool_support.hpp"
#include "scratch.hpp"

#include <cohort/cohort.hpp>

#include <asio/use_future.hpp>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pool_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::task;

namespace {

int loaded = 0;
void load(int value) { loaded = value; }
int what_is_loaded() { return loaded; }

double sum(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}
void fill(cohort::shared_array<int> into, int value) { std::ranges::fill(into, value); }
void produce(cohort::queue_writer<int> into, int count) {
    for (int i = 0; i < count; ++i)
        into.put(i);
}
std::string variable(const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return value != nullptr ? value : "unset";
}
std::string print(const std::string& text) {
    std::fputs(text.c_str(), stdout);  // without an end of line: it stays in the buffer
    return text;
}
int size_of_group() { return cohort::this_worker::size(); }

}  // namespace

POOL_TEST("pool: a call gives what its function returns, by every start method") {
    for (const auto method : all_methods) {
        auto pool = co_await cohort::start_pool(pool_of(2).start_method(method));
        CHECK(co_await pool.submit(task<add>(3, 4)) == 7);
        CHECK(co_await pool.submit(task<echoed>("text")) == "text");
        co_await pool.submit(task<return_nothing>());
        const std::vector<double> halves(1000, 0.5);
        CHECK(co_await pool.submit(task<sum>(halves)) == 500.0);
        co_await pool.stop();
    }
}

POOL_TEST("pool: a large argument and a large value") {
    auto pool = co_await cohort::start_pool(1);
    for (const std::size_t size : {65'000u, 65'536u, 66'000u, 1u << 20, 10u << 20}) {
        const std::string text(size, 'x');
        CHECK(co_await pool.submit(task<echoed>(text)) == text);
    }
}

POOL_TEST("pool: a worker keeps what it has loaded") {
    auto pool = co_await cohort::start_pool(pool_of(1).initializer(task<load>(42)));
    const int first = co_await pool.submit(task<own_pid>());
    for (int i = 0; i < 100; ++i) {
        CHECK(co_await pool.submit(task<what_is_loaded>()) == 42);
        CHECK(co_await pool.submit(task<own_pid>()) == first);
    }
    const auto stats = pool.stats();
    CHECK(stats.size == 1);
    CHECK(stats.done == 201);
    CHECK(stats.failed == 0);
}

POOL_TEST("pool: calls run at the same time, as many as there are workers") {
    ready up(executor);
    gate hold;
    auto pool = co_await cohort::start_pool(
        pool_of(3).fd(up.child_end(), ready::number).fd(hold.child_end(), gate::number));
    std::vector<completed<int>> calls(3);
    for (auto& each : calls)
        pool.async_submit(task<wait_for_gate>(), each.into());
    co_await up.wait(3);
    CHECK(pool.stats().size == 3);
    for (const auto& worker : pool.workers()) {
        CHECK(worker.state == cohort::worker_state::running);
        CHECK(worker.task == "cohort::test::wait_for_gate");
    }
    hold.open();
    co_await until(executor, [&] { return std::ranges::all_of(calls, &completed<int>::done); });
    std::set<int> pids;
    for (auto& each : calls)
        pids.insert(each.take());
    CHECK(pids.size() == 3);
}

POOL_TEST("pool: shared arrays and ends of queues travel with a call") {
    auto pool = co_await cohort::start_pool(2);
    cohort::shared_array<int> array(1000);
    co_await pool.submit(task<fill>(array, 7));
    CHECK(std::ranges::count(array, 7) == 1000);

    cohort::queue<int> numbers;
    co_await pool.submit(task<produce>(numbers.writer(), 100));
    for (int expected = 0; expected < 100; ++expected)
        CHECK(*co_await numbers.get() == expected);
}

POOL_TEST("pool: a worker has the index of its slot, the pool's size and the options' settings") {
    const scratch_directory directory;
    auto pool = co_await cohort::start_pool(
        pool_of(2)
            .at_least(2)
            .env("COMMON", "yes")
            .options_for([](int slot) { return cohort::placement().env("OWN", slot * 10); })
            .stdout_to(directory.file("{index}-of-{size}")));
    std::set<std::string> seen;
    for (int i = 0; i < 100 && seen.size() < 2; ++i) {
        std::vector<completed<std::string>> pair(2);
        for (auto& each : pair)
            pool.async_submit(task<variable>("OWN"), each.into());
        co_await until(executor,
                       [&] { return std::ranges::all_of(pair, &completed<std::string>::done); });
        for (auto& each : pair)
            seen.insert(each.take());
    }
    CHECK(seen == std::set<std::string>{"0", "10"});
    CHECK(co_await pool.submit(task<variable>("COMMON")) == "yes");
    CHECK(co_await pool.submit(task<size_of_group>()) == 2);
    const int slot = co_await pool.submit(task<own_slot>());
    CHECK(co_await pool.submit(task<variable>("LOCAL_RANK")) == std::to_string(slot));
    // What a task has printed is there when its call completes.
    co_await pool.submit(task<print>("word"));
    CHECK(read_file(directory.file(std::to_string(slot) + "-of-2")) == "word");
    co_await pool.stop();
}

POOL_TEST("pool: a file of stdout is emptied once, and then has the text of all workers") {
    const scratch_directory directory;
    const auto path = directory.write("out", "old");
    auto pool = co_await cohort::start_pool(pool_of(1).tasks_per_worker(1).stdout_to(path));
    for (const char* const text : {"a", "b", "c"})
        co_await pool.submit(task<print>(text));
    CHECK(read_file(path) == "abc");
    co_await pool.stop();  // a worker that starts may make the file again
}

POOL_TEST("pool: logs() writes what the workers of each slot print") {
    const scratch_directory directory;
    auto pool = co_await cohort::start_pool(
        pool_of(1).tasks_per_worker(1).logs(cohort::logs(directory.path()).run_id("run{1}")));
    co_await pool.submit(task<print>("a"));
    co_await pool.submit(task<print>("b"));
    co_await pool.stop();
    CHECK(read_file(directory.file("run{1}/attempt_0/0/stdout.log")) == "ab");
}

POOL_TEST("pool: the console shows the slots that its filter names") {
    int asked = 0;
    const auto shows = [&asked](int) {
        ++asked;
        return false;
    };
    auto pool = co_await cohort::start_pool(pool_of(2).stdout_to(cohort::console().only(shows)));
    CHECK(asked == 2);  // by the call itself, for each slot
    co_await pool.submit(task<print>(""));
    co_await pool.stop();
    CHECK(asked == 2);
}

POOL_TEST("pool: streams that need a user are refused") {
    const auto refused = [](cohort::pool_options how) {
        auto start = cohort::start_pool(std::move(how), asio::use_future);
        CHECK_THROWS_AS((void)start.get(), std::invalid_argument);
    };
    refused(pool_of(1).stdout_to(cohort::lines()));
    refused(pool_of(1).stderr_to(cohort::chunks()));
    refused(pool_of(1).stdin_from(cohort::feed()));
    co_return;
}

POOL_TEST("pool: bad settings are refused") {
    CHECK_THROWS_AS(cohort::pool_options(0), std::invalid_argument);
    CHECK_THROWS_AS(pool_of(1).at_least(-1), std::invalid_argument);
    CHECK_THROWS_AS(pool_of(1).queue(0), std::invalid_argument);
    CHECK_THROWS_AS(pool_of(1).start_attempts(0), std::invalid_argument);
    CHECK_THROWS_AS(pool_of(1).starts_at_once(0), std::invalid_argument);
    CHECK_THROWS_AS(pool_of(1).ready_within(0s), std::invalid_argument);
    CHECK_THROWS_AS(pool_of(1).task_deadline(0s), std::invalid_argument);
    CHECK_THROWS_AS(cohort::call_limits().run(0s), std::invalid_argument);
    CHECK_THROWS_AS(cohort::call_limits().wait(-1s), std::invalid_argument);
    co_return;
}

POOL_TEST("pool: an empty pool refuses every call") {
    cohort::pool empty;
    CHECK_FALSE(empty.valid());
    CHECK_THROWS_AS((void)empty.stats(), std::logic_error);
    CHECK_THROWS_AS((void)empty.workers(), std::logic_error);
    CHECK_THROWS_AS((void)empty.get_executor(), std::logic_error);
    (void)co_await failure_of<std::logic_error>(empty.submit(task<add>(1, 2)));
    (void)co_await failure_of<std::logic_error>(empty.stop());
    (void)co_await failure_of<std::logic_error>(empty.drain());
    (void)co_await failure_of<std::logic_error>(empty.resize(2));
    CHECK_THROWS_AS((void)empty.try_submit(task<add>(1, 2), [](std::exception_ptr, int) {}),
                    std::logic_error);
    auto moved = co_await cohort::start_pool(1);
    auto pool = std::move(moved);
    CHECK_FALSE(moved.valid());
    CHECK(co_await pool.submit(task<add>(1, 2)) == 3);
}

TEST_CASE("pool: an idle pool does not keep its context running") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::pool> started;
    cohort::async_start_pool(io, 1, started.into());
    run_out(io);
    auto pool = started.take();
    completed<int> sum;
    pool.async_submit(task<add>(1, 2), sum.into());
    run_out(io);
    CHECK(sum.take() == 3);
}

}  // namespace pool_test
