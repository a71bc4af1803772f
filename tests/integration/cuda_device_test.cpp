// SPDX-License-Identifier: BSL-1.0
// What only a real device can show. The test "devices" runs this and the cases of cuda_test.cpp on
// one, where there is one.
#include "cuda_support.hpp"
#include "methods.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>

namespace cuda_device_test {

using namespace cohort::test;
using cohort::start_method;
using cohort::cuda::shared_array;

namespace {

void hold_and_die(int, const shared_array<char>& array) {
    array.narrow(0, 0, 1).copy_from(std::string("x"));
    std::raise(SIGKILL);
}

/// In bytes, of device 0; 0: the driver does not tell.
std::size_t free_memory() {
    auto* const ask = driver_function<int(std::size_t*, std::size_t*)>("cuMemGetInfo_v2");
    if (ask == nullptr)
        return 0;
    std::size_t free = 0;
    std::size_t total = 0;
    const current_context current;
    ask(&free, &total);
    return free;
}

}  // namespace

CUDA_TEST("cuda device: memory that a killed receiver had mapped is free again") {
    const std::size_t before = free_memory();
    if (before == 0)
        co_return skip("the stand-in does not tell how much memory is free");
    constexpr std::size_t size = std::size_t{256} << 20;
    {
        const shared_array<char> array(0, size);
        CHECK(free_memory() <= before - size / 2);  // others may use the device, too
        auto group =
            co_await cohort::spawn(cohort::function<hold_and_die>(array), by(start_method::spawn));
        co_await group.wait();
    }
    asio::steady_timer timer(executor);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (free_memory() + size / 4 < before && std::chrono::steady_clock::now() < until) {
        timer.expires_after(std::chrono::milliseconds(10));  // the driver tells no event
        co_await timer.async_wait(asio::use_awaitable);
    }
    CHECK(free_memory() + size / 4 >= before);
}

}  // namespace cuda_device_test
