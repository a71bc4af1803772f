// SPDX-License-Identifier: BSL-1.0
// Memory of devices that somebody else has allocated, and when it is released.
#include "cuda_kernel.hpp"
#include "cuda_support.hpp"
#include "methods.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cuda_adopt_test {

using namespace cohort::test;
using cohort::start_method;
using cohort::cuda::shared_array;

namespace {

using array_queue = cohort::queue<shared_array<int>>;

shared_array<int> give_back(int, shared_array<int> array) {
    array.copy_from(std::vector<int>(array.size(), 8));
    return array;
}
int rest_of(int, const shared_array<int>& array, cohort::event ready, cohort::event go) {
    ready.set();
    go.wait();
    const auto values = values_of(array);
    return std::accumulate(values.begin(), values.end(), 0);
}

void put_adopted_and_die(int, cohort::queue_writer<shared_array<int>> to) {
    (void)cohort::cuda::available();  // initialises the driver
    const driver_memory memory(4096);
    to.put(cohort::cuda::adopt(memory.as<int>(), 16, {}));
    std::raise(SIGKILL);
}

std::string refusal_of(std::uint64_t address) {
    try {
        (void)cohort::cuda::adopt(reinterpret_cast<int*>(address), 4, {});
    } catch (const cohort::sharing_error& e) {
        return e.what();
    }
    return "";
}
constexpr auto reason = "memory of cudaMallocAsync and other pools, and of contexts made by "
                        "cuCtxCreate, can't be adopted";

}  // namespace

CUDA_TEST("cuda adopt: adopted memory is released once, when the last of all its users is gone") {
    int releases = 0;
    std::promise<void> released;
    driver_memory memory(4096);
    {
        auto adopted = cohort::cuda::adopt(memory.as<int>(), 1024, [&] {
            ++releases;
            memory.free();
            released.set_value();
        });
        adopted.narrow(0, 0, 4).copy_from(std::vector{1, 2, 3, 4});
        array_queue dropped;
        co_await dropped.put(adopted);
        cohort::event ready;
        cohort::event go;
        const auto how = by(start_method::spawn);
        const auto four = adopted.narrow(0, 0, 4);
        auto killed = co_await cohort::spawn(cohort::function<use_and_die>(four), how);
        auto resting = co_await cohort::spawn(cohort::function<rest_of>(four, ready, go), how);
        auto other = co_await cohort::spawn(cohort::function<add_three>(four), how);
        adopted = {};
        co_await killed.wait();
        co_await other.wait();
        co_await ready.async_wait(asio::use_awaitable);
        CHECK(releases == 0);
        go.set();
        co_await resting.join();
        CHECK(releases == 0);  // `four` and the message are still there
    }
    CHECK(released.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    CHECK(releases == 1);
}

CUDA_TEST(
    "cuda adopt: adopted memory comes home from a worker, also if this process kept no handle") {
    const auto released = std::make_shared<std::promise<void>>();
    const auto memory = std::make_shared<driver_memory>(4096);
    {
        std::vector<cohort::outcome> outcomes;
        {
            auto adopted = cohort::cuda::adopt(memory->as<int>() + 4, 16, [memory, released] {
                memory->free();
                released->set_value();
            });
            const auto report = co_await cohort::run(
                cohort::function<give_back>(std::move(adopted)), by(start_method::spawn));
            outcomes = report.outcomes;
        }
        const auto returned = outcomes[0].result<shared_array<int>>();
        CHECK(returned.data() == memory->as<int>() + 4);
        CHECK(values_of(returned) == std::vector<int>(16, 8));
    }
    CHECK(released->get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready);
}

CUDA_TEST("cuda adopt: adopted memory of cuMemCreate is handed over from any place in it") {
    const auto released = std::make_shared<std::promise<void>>();
    const auto block = std::make_shared<shared_array<int>>(
        counted(1000));  // made as another allocator would make it
    {
        const auto adopted = cohort::cuda::adopt(block->data() + 10, 100, [block, released] {
            *block = {};
            released->set_value();
        });
        co_await cohort::run(cohort::function<add_three>(adopted), by(start_method::spawn));
        CHECK(values_of(adopted.narrow(0, 0, 2)) == std::vector{13, 14});
        CHECK(values_of(block->narrow(0, 9, 2)) == std::vector{9, 13});
    }
    CHECK(released->get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready);
}

CUDA_TEST("cuda adopt: memory that can't be adopted is not released") {
    bool is_released = false;
    int on_the_host = 0;
    CHECK_THROWS_AS(cohort::cuda::adopt(&on_the_host, 1, [&] { is_released = true; }),
                    cohort::sharing_error);
    int* const nothing = nullptr;
    std::promise<void> released;
    CHECK(cohort::cuda::adopt(nothing, 0, [&] { released.set_value(); }).valid());
    CHECK(released.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    CHECK_FALSE(is_released);
    driver_memory memory(4096);
    auto* const crooked = reinterpret_cast<int*>(memory.as<char>() + 1);
    CHECK_THROWS_AS(cohort::cuda::adopt(crooked, 1, [&] { is_released = true; }),
                    std::invalid_argument);
    (void)cohort::cuda::adopt(memory.as<int>(), 1, {});
    CHECK_FALSE(is_released);
    co_return;
}

CUDA_TEST("cuda adopt: memory of cuMemAlloc whose owner was killed is a typed error") {
    array_queue arrays;
    const auto how = by(start_method::spawn).on_failure(cohort::on_failure::keep_going);
    {
        auto group = co_await cohort::spawn(cohort::function<put_adopted_and_die>(arrays), how);
        co_await group.wait();
        CHECK(group.outcomes()[0].status.signal() == SIGKILL);
    }
    std::string text;
    try {
        (void)co_await arrays.get();
    } catch (const cohort::sharing_error& e) {
        text = e.what();
    }
    CHECK_MESSAGE(text.find("cuIpcOpenMemHandle_v2: CUDA_ERROR") != text.npos, text);
}

CUDA_TEST("cuda adopt: memory of a pool is refused with the reason") {
    if (uses_standin)
        co_return skip("the stand-in has no pools");
    const other_stream stream;
    const current_context current;
    std::uint64_t address = 0;
    must<std::uint64_t*, std::size_t, void*>("cuMemAllocAsync", &address, 4096, stream.get());
    must<void*>("cuStreamSynchronize", stream.get());
    const auto text = refusal_of(address);
    CHECK_MESSAGE(text.find(reason) != text.npos, text);
    must<std::uint64_t, void*>("cuMemFreeAsync", address, stream.get());
    must<void*>("cuStreamSynchronize", stream.get());
}

CUDA_TEST("cuda adopt: memory of another context is handed over, or refused with the reason") {
    if (uses_standin)
        co_return skip("the stand-in makes no contexts");
    void* context = nullptr;
    must<void**, unsigned, int>("cuCtxCreate_v2", &context, 0, 0);
    std::uint64_t address = 0;
    must<std::uint64_t*, std::size_t>("cuMemAlloc_v2", &address, 4096);
    must<void**>("cuCtxPopCurrent_v2", &context);
    try {
        const auto adopted = cohort::cuda::adopt(reinterpret_cast<int*>(address), 2, {});
        adopted.copy_from(std::vector{1, 2});
        co_await cohort::run(cohort::function<add_three>(adopted), by(start_method::spawn));
        CHECK(values_of(adopted) == std::vector{4, 5});
    } catch (const cohort::sharing_error& e) {
        CHECK_MESSAGE(std::string(e.what()).find(reason) != std::string::npos, e.what());
    }
    must<void*>("cuCtxDestroy_v2", context);
}

}  // namespace cuda_adopt_test
