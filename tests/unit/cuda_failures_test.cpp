// SPDX-License-Identifier: BSL-1.0
// Each call of the driver fails in turn, whichever time it is made.
#include "guard.hpp"
#include "standin.hpp"

#include "share/cuda/segment.hpp"

#include <cohort/cuda.hpp>
#include <cohort/detail/codec.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cuda_failures_test {

using namespace cohort::test;
using cohort::sharing_error;
using cohort::cuda::shared_array;
using cohort::share::device::segment;

namespace {

/// Runs `work` once for each call that it makes, and has that call fail. Each time it must throw
/// what names the call, and leave nothing.
/// @return how many calls there were
int fail_each(const std::vector<const char*>& symbols, const std::function<void()>& work) {
    (void)cohort::cuda::available();
    int failed = 0;
    for (const auto* const symbol : symbols) {
        const int before = calls_of(symbol);
        work();
        const int calls = calls_of(symbol) - before;
        CHECK_MESSAGE(calls > 0, symbol << " is not called");
        for (int nth = 1; nth <= calls; ++nth, ++failed) {
            const leak_guard guard;
            const int held = held_by_standin();
            const auto which = std::string(symbol) + ":" + std::to_string(nth);
            INFO(which);
            std::string text;
            try {
                const failing_call scope(which);
                work();
            } catch (const sharing_error& e) {
                text = e.what();
                CHECK(e.code().value() != 0);
            }
            CHECK_MESSAGE(text.find(std::string(symbol) + ": CUDA_ERROR_UNKNOWN") != text.npos,
                          text);
            CHECK(held_by_standin() == held);
        }
    }
    return failed;
}

}  // namespace

TEST_CASE("cuda failures: each call that makes, fills, copies and sends an array") {
    const int failed = fail_each(
        {"cuMemGetAllocationGranularity", "cuMemCreate", "cuMemExportToShareableHandle",
         "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess", "cuStreamCreate", "cuMemsetD8Async",
         "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2",
         "cuDeviceCanAccessPeer", "cuStreamSynchronize"},
        [] {
            const shared_array<int> array(0, 2, 3);
            std::vector<int> values(6, 1);
            array.copy_from(values);
            array.copy_to(values);
            (void)array.on(1).clone();
            int stream = 0;
            (void)cohort::detail::encode_value(array.send_after(&stream));
        });
    CHECK(failed >= 20);
}

TEST_CASE("cuda failures: the wait before an array is sent") {
    (void)cohort::cuda::available();
    const shared_array<int> array(0, 2, 3);
    const leak_guard guard;
    for (const auto* const which : {"cuCtxSynchronize:1", "cuStreamIsCapturing:1"}) {
        const failing_call scope(which);
        CHECK_THROWS_AS(cohort::detail::encode_value(array), sharing_error);
        CHECK_NOTHROW(cohort::detail::encode_value(array));
    }
}

TEST_CASE("cuda failures: the wait for another device that may use the array") {
    (void)cohort::cuda::available();
    const auto array = shared_array<int>(0, 2, 3).on(1);
    const int waits = calls_of("cuCtxSynchronize");
    CHECK_NOTHROW(cohort::detail::encode_value(array));
    CHECK(calls_of("cuCtxSynchronize") == waits + 2);
    const failing_call scope("cuCtxSynchronize:2");
    CHECK_THROWS_AS(cohort::detail::encode_value(array), sharing_error);
}

TEST_CASE("cuda failures: each call that maps an array which has arrived") {
    (void)cohort::cuda::available();
    const auto made = segment::make(1, 100);
    auto told = made->described();
    ++told.number;
    const int failed =
        fail_each({"cuDeviceTotalMem_v2", "cuMemGetAllocationGranularity",
                   "cuMemImportFromShareableHandle", "cuMemGetAllocationPropertiesFromHandle",
                   "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"},
                  [&told] { (void)segment::arrived(told); });
    CHECK(failed >= 7);
}

TEST_CASE("cuda failures: each call that adopts memory") {
    (void)cohort::cuda::available();
    const driver_memory simple(std::size_t{1} << 20);
    CHECK(fail_each({"cuPointerGetAttribute", "cuMemGetAddressRange_v2", "cuIpcGetMemHandle"},
                    [&] { (void)segment::adopt(simple.as<char>(), 100, nullptr); }) == 3);
    const auto exportable = segment::make(0, 100);
    CHECK(fail_each({"cuMemRetainAllocationHandle", "cuMemGetAllocationPropertiesFromHandle",
                     "cuMemExportToShareableHandle"},
                    [&] { (void)segment::adopt(exportable->data(), 100, nullptr); }) == 4);
}

TEST_CASE("cuda failures: memory that can't be handed over is refused with the reason") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const auto refusal_of = [](const void* data) -> std::string {
        try {
            (void)segment::adopt(data, 100, nullptr);
        } catch (const sharing_error& e) {
            return e.what();
        }
        return "";
    };
    {
        const driver_memory of_a_pool(4096);
        const failing_call scope("cuIpcGetMemHandle:1:1");
        CHECK(refusal_of(of_a_pool.as<char>())
                  .ends_with("cuIpcGetMemHandle: CUDA_ERROR_INVALID_VALUE: memory of "
                             "cudaMallocAsync and other "
                             "pools, and of contexts made by cuCtxCreate, can't be adopted"));
    }
    const auto& driver = cohort::share::device::session::open();
    const cohort::share::device::operation with(driver, 0, "memory");
    const std::size_t bytes = std::size_t{2} << 20;
    cohort::share::device::driver::allocation_properties without_descriptor;
    without_descriptor.handle_types = 0;
    cohort::share::device::allocation memory(driver.calls());
    with.require(driver.calls().create, memory.to_fill(), bytes, &without_descriptor, 0U);
    const cohort::share::device::mapping mapped(with, memory, bytes);
    const auto text = refusal_of(reinterpret_cast<const void*>(mapped.address()));
    CHECK(text.find("without CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR") != text.npos);
}

TEST_CASE("cuda failures: a device whose context can't be made current leaves nothing mapped") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    {
        const shared_array<int> array(1, 10);
        const failing_call scope("cuCtxPushCurrent_v2:1");
        CHECK_THROWS_AS(cohort::detail::encode_value(array), sharing_error);
    }
    int pushed = 0;
    {
        const shared_array<int> array(1, 10);
        ::setenv("COHORT_STANDIN_FAIL", "cuCtxPushCurrent_v2:1", 1);
        pushed = calls_of("cuCtxPushCurrent_v2");
    }
    CHECK(calls_of("cuCtxPushCurrent_v2") == pushed + 1);
    ::unsetenv("COHORT_STANDIN_FAIL");
}

TEST_CASE("cuda failures: memory to adopt must be within one allocation") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const driver_memory memory(1000);
    CHECK_NOTHROW((void)segment::adopt(memory.as<char>() + 500, 500, nullptr));
    CHECK_THROWS_AS((void)segment::adopt(memory.as<char>() + 500, 501, nullptr), sharing_error);
    const int on_the_host = 0;
    CHECK_THROWS_AS((void)segment::adopt(&on_the_host, 4, nullptr), sharing_error);
}

}  // namespace cuda_failures_test
