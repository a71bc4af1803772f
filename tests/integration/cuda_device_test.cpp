// SPDX-License-Identifier: BSL-1.0
// What only a real device can show. The cases of cuda_test.cpp run on one too, where there is one.
#include "cuda_support.hpp"
#include "methods.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <string>

namespace cuda_device_test {

using namespace cohort::test;
using cohort::start_method;
using cohort::cuda::shared_array;

namespace {

constexpr auto real_driver = "libcuda.so.1";

std::string why_not(int) { return cohort::cuda::why_not(); }
void hold_and_die(int, const shared_array<char>& array) {
    array.narrow(0, 0, 1).copy_from(std::string("x"));
    std::raise(SIGKILL);
}

/// In bytes, of device 0; 0: the driver does not tell.
std::size_t free_memory() {
    auto* const ask = driver_function<int(std::size_t*, std::size_t*)>("cuMemGetInfo_v2");
    if (ask == nullptr)
        return 0;
    void* context = nullptr;
    std::size_t free = 0;
    std::size_t total = 0;
    driver_function<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0);
    driver_function<int(void*)>("cuCtxPushCurrent_v2")(context);
    ask(&free, &total);
    driver_function<int(void**)>("cuCtxPopCurrent_v2")(&context);
    return free;
}

}  // namespace

GROUP_TEST("cuda device: what passes on the stand-in passes on a real device") {
    if (!uses_standin)
        co_return skip("this is the run on a real device");
    const auto how = by(start_method::spawn).env("COHORT_CUDA_LIBRARY", real_driver);
    const auto asked = co_await cohort::run(cohort::function<why_not>(), how);
    if (const auto why = asked.outcomes[0].result<std::string>(); !why.empty())
        co_return skip(why);
    const auto itself = std::filesystem::read_symlink("/proc/self/exe").string();
    auto again = cohort::command(itself, "-tc=cuda: *,cuda trouble: *,cuda device: memory*");
    again.env("COHORT_CUDA_LIBRARY", real_driver);
    const auto report = co_await cohort::run(again, 1);
    CHECK(report.outcomes[0].status.exit_code() == 0);
}

CUDA_TEST("cuda device: memory that a killed receiver had mapped is free again") {
    const std::size_t before = free_memory();
    if (before == 0)
        co_return skip("the stand-in does not tell how much memory is free");
    constexpr std::size_t size = std::size_t{256} << 20;
    {
        const shared_array<char> array(0, size);
        CHECK(free_memory() <= before - size);
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
