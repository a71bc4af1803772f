// SPDX-License-Identifier: BSL-1.0
// Arrays on devices while a stream captures a graph: the driver forbids some calls then, and a
// forbidden call makes the capture invalid.
#include "guard.hpp"
#include "standin.hpp"

#include "share/cuda/segment.hpp"

#include <cohort/cuda.hpp>
#include <cohort/detail/codec.hpp>

#include <doctest/doctest.h>

#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace cuda_capture_test {

using namespace cohort::test;
using cohort::sharing_error;
using cohort::cuda::shared_array;
using cohort::detail::encode_value;
using cohort::share::device::segment;
using kind = capturing_stream::kind;

namespace {

/// Uses arrays in every way that needs no wait for a whole device.
void use_arrays() {
    const shared_array<int> array(0, 4);
    array.copy_from(std::vector<int>{1, 2, 3, 4});
    std::vector<int> values(4);
    array.clone().copy_to(values);
    CHECK(values == std::vector<int>{1, 2, 3, 4});
    char other_stream = 0;
    (void)encode_value(array.on(1).send_after(&other_stream));
    auto told = segment::make(0, 100)->described();
    ++told.number;
    (void)segment::arrived(told);
}

std::string refusal_of_send(const shared_array<int>& array) {
    try {
        (void)encode_value(array);
    } catch (const sharing_error& e) {
        CHECK(e.code() == std::errc::device_or_resource_busy);
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("cuda capture: a capture stays valid while its thread and others use arrays") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const int held = held_by_standin();
    {
        capturing_stream graph(kind::blocking);
        use_arrays();
        std::thread(use_arrays).join();
        CHECK(graph.end());
    }
    { const shared_array<int> ends_what_was_kept(0, 1); }
    CHECK(held_by_standin() == held);
}

TEST_CASE("cuda capture: memory is unmapped after the capture, because its device can't be waited "
          "for before") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const int held = held_by_standin();
    {
        capturing_stream graph(kind::blocking);
        int with_stream = held_by_standin();
        { const shared_array<int> array(0, 4); }
        CHECK(held_by_standin() > with_stream);
        with_stream = held_by_standin();
        CHECK(graph.end());
        { const shared_array<int> next(0, 4); }
        CHECK(held_by_standin() < with_stream);
    }
    CHECK(held_by_standin() == held);
}

TEST_CASE("cuda capture: a send that would wait for a capture is refused, and leaves it valid") {
    (void)cohort::cuda::available();
    const shared_array<int> array(0, 4);
    capturing_stream graph(kind::blocking);
    CHECK(refusal_of_send(array).find("a stream captures a graph") != std::string::npos);
    CHECK(refusal_of_send(array.send_after(graph.get())).find("a stream captures a graph") !=
          std::string::npos);
    CHECK(graph.end());
    CHECK_NOTHROW(encode_value(array));
    CHECK_NOTHROW(encode_value(array.send_after(graph.get())));
}

TEST_CASE("cuda capture: a stream made non-blocking captures while arrays are made and copied") {
    (void)cohort::cuda::available();
    shared_array<int> array;
    capturing_stream graph(kind::non_blocking);
    array = shared_array<int>(0, 4);
    array.copy_from(std::vector<int>(4, 7));
    CHECK(graph.end());
    // The library can't see such a capture, and a wait for the device ends it.
    capturing_stream again(kind::non_blocking);
    CHECK(refusal_of_send(array).find("a stream captures a graph") != std::string::npos);
    CHECK_FALSE(again.end());
}

TEST_CASE("cuda capture: the caller's mode is its own again after each call") {
    (void)cohort::cuda::available();
    const auto exchange = driver_function<int(int*)>("cuThreadExchangeStreamCaptureMode");
    int mode = 1;  // of captures in this thread only
    (void)exchange(&mode);
    use_arrays();
    const failing_call scope("cuCtxPushCurrent_v2:1");
    CHECK_THROWS_AS(shared_array<int>(0, 4), sharing_error);
    (void)exchange(&mode);
    CHECK(mode == 1);
}

}  // namespace cuda_capture_test
