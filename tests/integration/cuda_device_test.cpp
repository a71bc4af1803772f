// SPDX-License-Identifier: BSL-1.0
// What only a real device can show. The test "devices" runs this and the cases of cuda_test.cpp on
// one, where there is one.
#include "cuda_kernel.hpp"
#include "cuda_support.hpp"
#include "methods.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace cuda_device_test {

using namespace cohort::test;
using cohort::start_method;
using cohort::cuda::shared_array;

namespace {

void hold_and_die(int, const shared_array<char>& array) {
    array.narrow(0, 0, 1).copy_from(std::string("x"));
    std::raise(SIGKILL);
}

/// The variable that says which devices a process sees.
const char* const visible_devices =
    uses_standin ? "COHORT_STANDIN_VISIBLE" : "CUDA_VISIBLE_DEVICES";

/// How many devices this process sees.
int devices() {
    int count = 0;
    must<int*>("cuDeviceGetCount", &count);
    return count;
}

/// A device as CUDA_VISIBLE_DEVICES names it: "GPU-0a1b2c3d-...".
std::string name_of(int device) {
    std::array<unsigned char, 16> uuid{};
    must<std::array<unsigned char, 16>*, int>("cuDeviceGetUuid_v2", &uuid, device);
    std::string name = "GPU";
    for (std::size_t i = 0; i < uuid.size(); ++i)
        name += fmt::format("{}{:02x}", i == 0 || (i >= 4 && i <= 10 && i % 2 == 0) ? "-" : "",
                            uuid[i]);
    return name;
}

void require(bool holds, const char* what) {
    if (!holds)
        throw std::runtime_error(what);
}

/// Adds 10 to the elements. @return a copy on the same device
shared_array<int> add_ten(int, const shared_array<int>& array, int device) {
    require(array.device() == device, "the array is on another device");
    auto values = values_of(array);
    for (int& value : values)
        value += 10;
    array.copy_from(values);
    return array.clone();
}

/// Uses arrays before and after a cudaDeviceReset, and sends one. @return what became of an array
/// that was made before it
std::string use_after_reset(int, cohort::queue_writer<shared_array<int>> to) {
    std::optional<shared_array<int>> before = counted(4);
    must<int>("cuDevicePrimaryCtxReset_v2", 0);
    const auto after = counted(5);
    require(values_of(after) == std::vector{0, 1, 2, 3, 4}, "a new array is wrong");
    to.put(after);
    std::string found;
    try {
        found = values_of(*before) == std::vector{0, 1, 2, 3} ? "it is as it was" : "it is changed";
    } catch (const cohort::sharing_error& e) {
        found = e.what();
    }
    before.reset();
    require(values_of(after) == std::vector{0, 1, 2, 3, 4}, "the end of an old array harms others");
    require(values_of(counted(6).clone())[5] == 5, "a newer array is wrong");
    to.put(counted(7));
    return found;
}

/// @return the first number of the arrays that is not its place; -1: there is none
int first_wrong(int, const std::vector<shared_array<int>>& arrays) {
    for (std::size_t i = 0; i < arrays.size(); ++i)
        if (values_of(arrays[i]) != std::vector(3, static_cast<int>(i)))
            return static_cast<int>(i);
    return -1;
}

}  // namespace

CUDA_TEST("cuda device: the driver and the device say what they are") {
    if (uses_standin)
        co_return skip("the stand-in is no device");
    int version = 0;
    must<int*>("cuDriverGetVersion", &version);
    std::array<char, 256> name{};
    must<char*, int, int>("cuDeviceGetName", name.data(), static_cast<int>(name.size()), 0);
    MESSAGE("CUDA " << version / 1000 << '.' << version % 1000 / 10 << ", " << devices()
                    << " devices, the first is " << std::string(name.data()) << ", " << name_of(0)
                    << ", " << (free_memory() >> 20) << " MiB are free");
    CHECK(version != 0);
}

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

CUDA_TEST("cuda device: after a cudaDeviceReset new arrays are made and sent") {
    cohort::queue<shared_array<int>> arrays;
    const auto report =
        co_await cohort::run(cohort::function<use_after_reset>(arrays), by(start_method::spawn));
    MESSAGE("of an array that was made before: " << report.outcomes[0].result<std::string>());
    const auto first = co_await arrays.get();
    REQUIRE(first);
    CHECK(values_of(*first) == std::vector{0, 1, 2, 3, 4});
    const auto second = co_await arrays.get();
    REQUIRE(second);
    CHECK(values_of(*second) == std::vector{0, 1, 2, 3, 4, 5, 6});
}

CUDA_TEST("cuda device: a worker that numbers devices otherwise gets arrays on their device") {
    const int last = devices() - 1;
    const std::vector<int> tens{10, 10};
    std::vector<std::string> only_last{std::to_string(last)};
    std::string reversed;
    for (int device = last; device >= 0; --device)
        reversed += (reversed.empty() ? "" : ",") + std::to_string(device);
    if (!uses_standin)
        only_last.push_back(name_of(last));
    auto lists = only_last;
    lists.push_back(reversed);
    for (const auto& list : lists) {
        const shared_array<int> array(last, 2);
        const auto how = by(start_method::spawn).env(visible_devices, list);
        const auto report = co_await cohort::run(cohort::function<add_ten>(array, 0), how);
        CHECK_MESSAGE(values_of(array) == tens, list);
        const auto copy = report.outcomes[0].result<shared_array<int>>();
        CHECK_MESSAGE(copy.device() == last, list);
        CHECK_MESSAGE(values_of(copy) == tens, list);
    }
    const auto how = by(start_method::spawn).env(visible_devices, reversed);
    const driver_memory memory(4096);
    const auto adopted = cohort::cuda::adopt(memory.as<int>(), 2, {});
    adopted.copy_from(std::vector{0, 0});
    co_await cohort::run(cohort::function<add_ten>(adopted, last), how);
    CHECK(values_of(adopted) == tens);
}

CUDA_TEST("cuda device: a worker that sees other devices only is told so") {
    if (devices() < 2)
        co_return skip("there is one device only");
    const auto array = counted(2);
    const driver_memory memory(4096);
    for (const auto& sent : {array, cohort::cuda::adopt(memory.as<int>(), 2, {})}) {
        std::string text;
        try {
            const auto how = by(start_method::spawn).env(visible_devices, "1");
            co_await cohort::run(cohort::function<add_ten>(sent, 0), how);
        } catch (const cohort::process_raised_exception& e) {
            text = e.what();
        }
        CHECK_MESSAGE(text.find("this process does not see its CUDA device") != text.npos, text);
    }
}

CUDA_TEST("cuda device: a worker that sees no device says so") {
    const auto array = counted(2);
    std::string text;
    try {
        const auto how = by(start_method::spawn).env(visible_devices, "");
        co_await cohort::run(cohort::function<add_ten>(array, 0), how);
    } catch (const cohort::process_raised_exception& e) {
        text = e.what();
    }
    CHECK_MESSAGE(text.find("cuInit: CUDA_ERROR_NO_DEVICE") != text.npos, text);
}

CUDA_TEST("cuda device: 1,000 small arrays of an arena arrive with their values") {
    const cohort::cuda::shared_arena arena(0, std::size_t{1000} * 256);
    std::vector<shared_array<int>> many;
    for (int i = 0; i < 1000; ++i) {
        many.push_back(arena.array<int>(3));
        many.back().copy_from(std::vector(3, i));
    }
    const auto report =
        co_await cohort::run(cohort::function<first_wrong>(many), by(start_method::spawn));
    CHECK(report.outcomes[0].result<int>() == -1);
}

}  // namespace cuda_device_test
