// SPDX-License-Identifier: BSL-1.0
// Arrays while kernels run. Only a real device runs them: the test "devices".
#include "cuda_kernel.hpp"
#include "cuda_support.hpp"
#include "methods.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace cuda_kernels_test {

using namespace std::chrono_literals;
using namespace cohort::test;
using cohort::start_method;
using cohort::cuda::shared_array;

namespace {

using array_queue = cohort::queue<shared_array<int>>;

constexpr std::size_t large = std::size_t{256} << 20;

void add_up(int, cohort::queue_reader<shared_array<int>> from, cohort::queue_writer<int> to) {
    for (const auto& array : from) {
        const auto values = values_of(array);
        to.put(std::accumulate(values.begin(), values.end(), 0));
    }
}
void run_kernel_and_die(int, const shared_array<int>& given) {
    const shared_array<char> own(0, large);
    gated_kernel kernel(given.data(), given.size());
    kernel.start(9, 60s);
    std::raise(SIGKILL);
}

/// Waits until so much memory is free. @return false: it is not
asio::awaitable<bool> becomes_free(std::size_t wanted) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (free_memory() < wanted) {
        if (std::chrono::steady_clock::now() >= until)
            co_return false;
        timer.expires_after(10ms);  // the driver tells no event
        co_await timer.async_wait(asio::use_awaitable);
    }
    co_return true;
}

}  // namespace

CUDA_TEST("cuda kernels: arrays are made, copied and read while a kernel of another stream runs") {
    if (const auto why = gated_kernel::why_not(); !why.empty())
        co_return skip(why);
    const auto target = counted(4);
    (void)values_of(target.clone());
    gated_kernel kernel(target.data(), target.size());
    kernel.start(7);
    {
        const auto made = counted(1000);
        CHECK(kernel.is_running());  // no kernel is waited for while an array is made
        const auto copy = made.clone();
        CHECK(values_of(copy)[999] == 999);
        CHECK(kernel.is_running());
        CHECK(values_of(target) == std::vector{0, 1, 2, 3});
        CHECK(kernel.is_running());
        kernel.open();
    }
    CHECK(kernel.has_ended());  // the last handle of `made` has waited
    CHECK(values_of(target) == std::vector{7, 7, 7, 7});
}

CUDA_TEST("cuda kernels: the thread of the last handle waits for the device, and other threads run "
          "on") {
    if (const auto why = gated_kernel::why_not(); !why.empty())
        co_return skip(why);
    gated_kernel kernel(nullptr, 0);
    const std::size_t before = free_memory();
    std::optional<shared_array<char>> array(std::in_place, 0, large);
    CHECK(free_memory() <= before - large / 2);  // others may use the device, too
    kernel.start(0);
    std::atomic<bool> begins = false;
    std::atomic<bool> is_over = false;
    bool has_waited = false;
    std::thread dropping([&] {
        begins = true;
        array.reset();
        has_waited = kernel.has_ended();
        is_over = true;
    });
    asio::steady_timer timer(executor);
    for (int turn = 0; turn < 10 || !begins; ++turn) {
        timer.expires_after(5ms);
        co_await timer.async_wait(asio::use_awaitable);
    }
    CHECK_FALSE(is_over);
    CHECK(kernel.is_running());
    kernel.open();
    dropping.join();
    CHECK(has_waited);
    CHECK(co_await becomes_free(before - large / 4));
}

CUDA_TEST("cuda kernels: a worker sees what a kernel wrote, because the sender waits for it") {
    if (const auto why = gated_kernel::why_not(); !why.empty())
        co_return skip(why);
    const shared_array<int> array(0, 4);
    gated_kernel kernel(array.data(), array.size());
    array_queue arrays;
    cohort::queue<int> sums;
    auto group =
        co_await cohort::spawn(cohort::function<add_up>(arrays, sums), by(start_method::spawn));
    kernel.start(5, 500ms);
    co_await arrays.put(array);  // waits for the whole device
    CHECK(kernel.has_ended());
    const auto five = co_await sums.get();
    CHECK(*five == 20);
    kernel.start(6, 500ms);
    co_await arrays.put(array.send_after(kernel.stream()));
    CHECK(kernel.has_ended());
    const auto six = co_await sums.get();
    CHECK(*six == 24);
    arrays.close();
    co_await group.join();
}

CUDA_TEST("cuda kernels: a send after one stream does not wait for the kernel of another") {
    if (const auto why = gated_kernel::why_not(); !why.empty())
        co_return skip(why);
    const auto array = counted(4);
    gated_kernel kernel(nullptr, 0);
    const other_stream stream;
    array_queue arrays;
    cohort::queue<int> sums;
    auto group =
        co_await cohort::spawn(cohort::function<add_up>(arrays, sums), by(start_method::spawn));
    co_await arrays.put(array);
    co_await sums.get();  // now the worker has its context
    kernel.start(0);
    co_await arrays.put(array.send_after(stream.get()));
    CHECK(kernel.is_running());
    const auto sum = co_await sums.get();
    CHECK(*sum == 6);
    CHECK(kernel.is_running());  // the worker works on the same device meanwhile
    kernel.open();
    arrays.close();
    co_await group.join();
}

CUDA_TEST("cuda kernels: a worker that is killed while its kernel runs leaves no memory in use") {
    if (const auto why = gated_kernel::why_not(); !why.empty())
        co_return skip(why);
    const auto given = counted(4);
    const std::size_t before = free_memory();
    const auto how = by(start_method::spawn).on_failure(cohort::on_failure::keep_going);
    auto group = co_await cohort::spawn(cohort::function<run_kernel_and_die>(given), how);
    co_await group.wait();
    CHECK(group.outcomes()[0].status.signal() == SIGKILL);
    CHECK(co_await becomes_free(before - large / 4));
    CHECK(group.outcomes()[0].ended - group.outcomes()[0].started < 50s);  // not the kernel's end
    CHECK(values_of(given) == std::vector{0, 1, 2, 3});
    given.copy_from(std::vector{4, 3, 2, 1});
    CHECK(values_of(given.clone()) == std::vector{4, 3, 2, 1});
}

}  // namespace cuda_kernels_test
