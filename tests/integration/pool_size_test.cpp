// SPDX-License-Identifier: BSL-1.0
// How many workers a pool has: it grows, shrinks, renews them, and bounds its queue.
#include "pool_support.hpp"
#include "scratch.hpp"

#include <cohort/cohort.hpp>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <exception>
#include <filesystem>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace pool_size_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::task;

namespace {

/// Keeps so much more memory.
int take_memory(std::size_t bytes) {
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return memory == MAP_FAILED ? -1 : ::getpid();
}

void need_file(const std::string& path) {
    if (::access(path.c_str(), F_OK) != 0)
        throw std::runtime_error("no model");
}
std::string when() { return std::getenv("COHORT_TEST_WHEN"); }

/// Submits calls, keeping many in flight, and counts those that were right.
class load {
public:
    explicit load(cohort::pool& pool) : pool_(pool) {}

    asio::awaitable<void> run(asio::any_io_executor executor, int calls) {
        for (int i = 0; i < calls; ++i) {
            co_await until(executor, [&] { return in_flight_ < 64; });
            ++in_flight_;
            pool_.async_submit(task<add>(i, 1), [this, i](std::exception_ptr error, int sum) {
                --in_flight_;
                right_ += !error && sum == i + 1 ? 1 : 0;
            });
        }
        co_await until(executor, [&] { return in_flight_ == 0; });
    }
    int right() const noexcept { return right_; }

private:
    cohort::pool& pool_;
    int in_flight_ = 0;
    int right_ = 0;
};

}  // namespace

POOL_TEST("pool size: a burst of calls makes the pool grow, and it shrinks when they are done") {
    ready up(executor);
    gate hold;
    auto pool = co_await cohort::start_pool(pool_of(4)
                                                .at_least(1)
                                                .idle(1ms)
                                                .fd(up.child_end(), ready::number)
                                                .fd(hold.child_end(), gate::number));
    CHECK(pool.stats().size == 1);
    std::deque<completed<int>> calls(20);
    for (auto& each : calls)
        pool.async_submit(task<wait_for_gate>(), each.into());
    co_await up.wait(4);
    CHECK(pool.stats().size == 4);
    CHECK(pool.stats().waiting == 16);
    hold.open();
    co_await until(executor, [&] { return std::ranges::all_of(calls, &completed<int>::done); });
    CHECK(std::ranges::all_of(calls, &completed<int>::well));
    co_await until(executor, [&] { return pool.stats().size == 1; });
    CHECK(pool.stats().idle == 1);
    CHECK(pool.stats().lost == 0);
    CHECK(pool.stats().replaced == 0);
}

POOL_TEST("pool size: of the idle workers the one that was used last gets the next call") {
    auto pool = co_await cohort::start_pool(pool_of(3).at_least(3));
    const int pid = co_await pool.submit(task<own_pid>());
    for (int i = 0; i < 20; ++i)
        CHECK(co_await pool.submit(task<own_pid>()) == pid);
}

POOL_TEST("pool size: tasks_per_worker replaces workers, and no call is lost") {
    for (const bool overlaps : {true, false}) {
        auto pool = co_await cohort::start_pool(pool_of(2).tasks_per_worker(1).overlap(overlaps));
        load calls(pool);
        co_await calls.run(executor, 200);
        CHECK(calls.right() == 200);
        const auto stats = pool.stats();
        CHECK(stats.done == 200);
        CHECK(stats.lost == 0);
        CHECK(stats.replaced == 0);
        co_await until(executor, [&] { return pool.stats().recycled > 0; });
        co_await pool.stop();
    }
}

POOL_TEST("pool size: memory_per_worker replaces a worker that has added more") {
    auto pool = co_await cohort::start_pool(pool_of(1).memory_per_worker(16 << 20));
    const int first = co_await pool.submit(task<own_pid>());
    CHECK(co_await pool.submit(task<take_memory>(64 << 20)) == first);
    co_await until(executor, [&] { return pool.stats().recycled == 1; });
    CHECK(co_await pool.submit(task<own_pid>()) != first);
    CHECK(pool.stats().lost == 0);
}

POOL_TEST("pool size: recycle() replaces every worker under load, and no call is lost") {
    auto pool = co_await cohort::start_pool(pool_of(3).at_least(3));
    std::set<int> before;
    for (const auto& worker : pool.workers())
        before.insert(worker.pid);
    CHECK(before.size() == 3);
    load calls(pool);
    completed<int> renewed;
    pool.async_recycle([&](std::exception_ptr error) { renewed.into()(std::move(error), 0); });
    co_await calls.run(executor, 2000);
    co_await until(executor, [&] { return renewed.done(); });
    CHECK(renewed.well());
    CHECK(calls.right() == 2000);
    CHECK(pool.stats().recycled == 3);
    for (const auto& worker : pool.workers())
        CHECK_FALSE(before.contains(worker.pid));
}

POOL_TEST(
    "pool size: recycle() fails if no successor becomes ready, and the old workers serve on") {
    const scratch_directory directory;
    const auto path = directory.write("model", "");
    auto pool = co_await cohort::start_pool(
        pool_of(1).initializer(task<need_file>(path)).stderr_to(cohort::discard()));
    const int pid = co_await pool.submit(task<own_pid>());
    std::filesystem::remove(path);
    const auto error = co_await failure_of<cohort::pool_broken>(pool.recycle());
    CHECK(std::string(error.what()).find("no model") != std::string::npos);
    CHECK(co_await pool.submit(task<own_pid>()) == pid);
    directory.write("model", "");
    co_await pool.recycle();
    CHECK(co_await pool.submit(task<own_pid>()) != pid);
    co_await pool.stop();
}

POOL_TEST("pool size: resize() gives new workers what the first ones have got") {
    const scratch_directory directory;
    directory.write("0", "old");
    directory.write("1", "old");
    ::setenv("COHORT_TEST_WHEN", "start", 1);
    auto pool = co_await cohort::start_pool(pool_of(1).stdout_to(directory.file("{index}")));
    CHECK(read_file(directory.file("0")).empty());
    CHECK(read_file(directory.file("1")) == "old");
    ::setenv("COHORT_TEST_WHEN", "resize", 1);
    co_await pool.resize(2);
    CHECK(read_file(directory.file("1")).empty());
    co_await pool.recycle();
    CHECK(co_await pool.submit(task<when>()) == "start");
    co_await pool.stop();
    ::unsetenv("COHORT_TEST_WHEN");
}

POOL_TEST("pool size: a resize() that is refused empties no file") {
    const scratch_directory directory;
    directory.write("1", "precious");
    auto pool = co_await cohort::start_pool(pool_of(1).stdout_to(directory.file("{index}")));
    co_await pool.drain();
    CHECK(co_await is_aborted(pool.resize(2)));
    CHECK(read_file(directory.file("1")) == "precious");
}

POOL_TEST("pool size: a queue without end has room") {
    auto pool =
        co_await cohort::start_pool(pool_of(1).queue(std::numeric_limits<std::size_t>::max()));
    bool was_called = false;
    CHECK(pool.try_submit(task<own_pid>(), [&](std::exception_ptr, int) { was_called = true; }));
    co_await until(executor, [&] { return was_called; });
}

POOL_TEST("pool size: what this process changes of its own memory is none of a copy's") {
    std::vector<char> mine(96 << 20, 'a');
    auto pool = co_await cohort::start_pool(
        pool_of(1).start_method(cohort::start_method::fork).memory_per_worker(16 << 20));
    const int pid = co_await pool.submit(task<own_pid>());
    std::ranges::fill(mine, 'b');
    for (int i = 0; i < 5; ++i) {
        asio::steady_timer pause(executor, 150ms);  // for another look at its memory
        co_await pause.async_wait(asio::use_awaitable);
        CHECK(co_await pool.submit(task<own_pid>()) == pid);
    }
}

POOL_TEST("pool size: resize() under load loses no call") {
    auto pool = co_await cohort::start_pool(
        pool_of(1).options_for([](int slot) { return cohort::placement().env("SLOT", slot); }));
    load calls(pool);
    int sizes = 0;
    asio::co_spawn(
        executor,
        [&]() -> asio::awaitable<void> {
            for (const int size : {4, 2, 6, 1, 3}) {
                co_await pool.resize(size);
                ++sizes;
                CHECK(pool.stats().size <= size);
            }
        },
        asio::detached);
    co_await calls.run(executor, 3000);
    co_await until(executor, [&] { return sizes == 5; });
    CHECK(calls.right() == 3000);
    auto none = pool.resize(0);
    CHECK_THROWS_AS(co_await std::move(none), std::invalid_argument);
}

POOL_TEST("pool size: try_submit says at once whether the queue has room") {
    ready up(executor);
    gate hold;
    auto pool = co_await cohort::start_pool(
        pool_of(1).queue(2).fd(up.child_end(), ready::number).fd(hold.child_end(), gate::number));
    completed<int> running;
    CHECK(pool.try_submit(task<wait_for_gate>(), running.into()));
    co_await up.wait();
    std::deque<completed<int>> waiting(2);
    for (auto& each : waiting)
        CHECK(pool.try_submit(task<add>(1, 2), each.into()));
    bool was_called = false;
    CHECK_FALSE(
        pool.try_submit(task<add>(1, 2), [&](std::exception_ptr, int) { was_called = true; }));
    // submit() waits for room.
    completed<int> beyond;
    pool.async_submit(task<add>(1, 2), beyond.into());
    CHECK(pool.stats().waiting == 3);
    hold.open();
    co_await until(executor, [&] { return beyond.done(); });
    CHECK(beyond.take() == 3);
    CHECK(std::ranges::all_of(waiting, &completed<int>::well));
    co_await pool.stop();
    CHECK_FALSE(
        pool.try_submit(task<add>(1, 2), [&](std::exception_ptr, int) { was_called = true; }));
    CHECK_FALSE(was_called);
}

}  // namespace pool_size_test
