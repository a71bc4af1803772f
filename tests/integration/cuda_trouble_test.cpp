// SPDX-License-Identifier: BSL-1.0
// What processes are told that can't use devices: forked copies, and those without a driver.
#include "cuda_support.hpp"
#include "methods.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace cuda_trouble_test {

using namespace cohort::test;
using cohort::start_method;
using cohort::cuda::shared_array;

namespace {

std::string why_not(int) { return cohort::cuda::why_not(); }
void fill(int, const shared_array<int>& array) {
    array.copy_from(std::vector<int>(array.size(), 1));
}

asio::awaitable<std::string> why_not_in_worker(const char* variable, const char* value) {
    const auto report = co_await cohort::run(cohort::function<why_not>(),
                                             by(start_method::spawn).env(variable, value));
    co_return report.outcomes[0].result<std::string>();
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

}  // namespace

CUDA_TEST("cuda trouble: a forked copy of a process that has used the driver gets a sentence") {
    constexpr auto sentence = "Cannot re-initialize CUDA in forked subprocess";
    const auto how = by(start_method::fork);
    const auto report = co_await cohort::run(cohort::function<why_not>(), how);
    CHECK(contains(report.outcomes[0].result<std::string>(), sentence));
    const shared_array<int> array(0, 3);
    std::string text;
    try {
        co_await cohort::run(cohort::function<fill>(array), how);
    } catch (const cohort::process_raised_exception& e) {
        text = e.what();
    }
    CHECK(contains(text, sentence));
}

CUDA_TEST("cuda trouble: what is missing is named by its call") {
    if (!uses_standin)
        co_return skip("only the stand-in fails on demand");
    const auto nowhere = co_await why_not_in_worker("COHORT_CUDA_LIBRARY", "/nowhere/libcuda.so");
    CHECK(contains(nowhere, "/nowhere/libcuda.so: cannot open shared object file"));
    const auto old = co_await why_not_in_worker("COHORT_CUDA_LIBRARY", "libm.so.6");
    CHECK(contains(old, "libm.so.6 is too old: it has no cuInit"));
    const auto none = co_await why_not_in_worker("COHORT_STANDIN_DEVICES", "0");
    CHECK(contains(none, "cuInit: CUDA_ERROR_NO_DEVICE"));
    // No copy of a process that has used the driver: this is an error as any other.
    const auto uninitialised = co_await why_not_in_worker("COHORT_STANDIN_FAIL", "cuInit:1:3");
    CHECK(contains(uninitialised, "cuInit: CUDA_ERROR_NOT_INITIALIZED"));
    const auto one = co_await why_not_in_worker("COHORT_STANDIN_DEVICES", "1");
    CHECK(one.empty());
    for (const std::string symbol :
         {"cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetUuid_v2",
          "cuDevicePrimaryCtxRetain", "cuMemCreate", "cuMemImportFromShareableHandle"}) {
        const auto which = symbol + ":1:801";
        const auto why = co_await why_not_in_worker("COHORT_STANDIN_FAIL", which.c_str());
        CHECK_MESSAGE(contains(why, symbol + ": CUDA_ERROR_NOT_SUPPORTED"), why);
    }
}

CUDA_TEST("cuda trouble: a worker that can't open adopted memory names the call") {
    if (!uses_standin)
        co_return skip("only the stand-in fails on demand");
    const driver_memory memory(4096);
    const auto array = cohort::cuda::adopt(memory.as<int>(), 3, {});
    for (const std::string symbol : {"cuIpcOpenMemHandle_v2", "cuMemGetAddressRange_v2"}) {
        std::string text;
        try {
            const auto which = symbol + ":1:801";
            const auto how = by(start_method::spawn).env("COHORT_STANDIN_FAIL", which);
            co_await cohort::run(cohort::function<fill>(array), how);
        } catch (const cohort::process_raised_exception& e) {
            text = e.what();
        }
        CHECK_MESSAGE(contains(text, symbol + ": CUDA_ERROR_NOT_SUPPORTED"), text);
    }
}

CUDA_TEST("cuda trouble: a worker that does not see the device is told so") {
    if (!uses_standin)
        co_return skip("only the stand-in hides a device on demand");
    const shared_array<int> array(1, 3);
    std::string text;
    try {
        const auto how = by(start_method::spawn).env("COHORT_STANDIN_DEVICES", "1");
        co_await cohort::run(cohort::function<fill>(array), how);
    } catch (const cohort::process_raised_exception& e) {
        text = e.what();
    }
    CHECK(contains(text, "this process does not see its CUDA device"));
}

}  // namespace cuda_trouble_test
