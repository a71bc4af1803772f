// SPDX-License-Identifier: BSL-1.0
// Arrays while a stream captures a graph. tests/unit/cuda_capture_test.cpp shows on the stand-in
// what must hold; a real driver has the last word, and only that makes graphs.
#include "cuda_kernel.hpp"
#include "cuda_support.hpp"
#include "methods.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace cuda_capture_test {

using namespace cohort::test;
using cohort::start_method;
using cohort::cuda::shared_array;
using kind = capturing_stream::kind;
using mode = capturing_stream::mode;

namespace {

using array_queue = cohort::queue<shared_array<int>>;

/// Sends memory of its own with the values that have arrived.
void send_copies(int, cohort::queue_reader<shared_array<int>> from,
                 cohort::queue_writer<shared_array<int>> to) {
    for (const auto& array : from)
        to.put(array.clone());
}

void use_arrays() {
    const auto array = counted(4);
    CHECK(values_of(array.clone()) == std::vector{0, 1, 2, 3});
}

/// Sends an array and gets its copy, in memory that arrives here for the first time.
asio::awaitable<void> exchange(array_queue there, array_queue back, void* stream) {
    const auto array = counted(4);
    co_await there.put(array.send_after(stream));
    const auto copy = co_await back.get();
    REQUIRE(copy);
    CHECK(values_of(*copy) == std::vector{0, 1, 2, 3});
}

/// Has a stream that captures write 7 into each byte of an array, for which the graph is run later.
void capture_bytes(const capturing_stream& graph, const shared_array<int>& array) {
    const current_context current;
    must<std::uint64_t, unsigned char, std::size_t, void*>(
        "cuMemsetD8Async", reinterpret_cast<std::uint64_t>(array.data()), 7, array.size_bytes(),
        graph.get());
}

asio::awaitable<std::string> refusal_of_send(shared_array<int> array) {
    array_queue queue;
    try {
        co_await queue.put(array);
    } catch (const cohort::sharing_error& e) {
        CHECK(e.code() == std::errc::device_or_resource_busy);
        co_return e.what();
    }
    co_return "";
}

constexpr auto busy = "a stream captures a graph";

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

}  // namespace

CUDA_TEST("cuda capture: a capture stays valid while its thread and others use arrays") {
    array_queue there;
    array_queue back;
    const other_stream stream;
    auto group =
        co_await cohort::spawn(cohort::function<send_copies>(there, back), by(start_method::spawn));
    co_await exchange(there, back, stream.get());
    for (const auto how : {mode::global, mode::thread_local_only, mode::relaxed}) {
        const shared_array<int> written(0, 2);
        capturing_stream graph(kind::blocking, how);
        if (!uses_standin)
            capture_bytes(graph, written);
        use_arrays();
        std::thread(use_arrays).join();
        co_await exchange(there, back, stream.get());
        CHECK(values_of(written) == std::vector{0, 0});
        CHECK_MESSAGE(graph.end(), "mode " << static_cast<int>(how));
        if (uses_standin)
            continue;
        REQUIRE(graph.graph() != nullptr);
        run_graph(graph.graph());
        CHECK(values_of(written) == std::vector(2, 0x07070707));
    }
    there.close();
    co_await group.join();
    (void)counted(1);  // unmaps what was kept
}

CUDA_TEST("cuda capture: a send that would wait for a capture is refused, and leaves it valid") {
    const auto array = counted(4);
    capturing_stream graph(kind::blocking);
    const auto whole = co_await refusal_of_send(array);
    CHECK_MESSAGE(contains(whole, busy), whole);
    const auto by_stream = co_await refusal_of_send(array.send_after(graph.get()));
    CHECK_MESSAGE(contains(by_stream, busy), by_stream);
    CHECK(graph.end());
    const auto after = co_await refusal_of_send(array);
    CHECK(after == "");
    const auto after_stream = co_await refusal_of_send(array.send_after(graph.get()));
    CHECK(after_stream == "");
}

CUDA_TEST("cuda capture: a stream made non-blocking captures while arrays are made and copied") {
    for (const auto how : {mode::global, mode::thread_local_only, mode::relaxed}) {
        INFO("mode " << static_cast<int>(how));
        shared_array<int> array;
        capturing_stream graph(kind::non_blocking, how);
        array = counted(4);
        CHECK(values_of(array) == std::vector{0, 1, 2, 3});
        CHECK(graph.end());
    }
    co_return;
}

// What <cohort/cuda.hpp> says of them. A driver that keeps such a capture valid is more than that.
CUDA_TEST("cuda capture: a stream made non-blocking loses its capture to a wait for the device") {
    const auto array = counted(4);
    {
        capturing_stream graph(kind::non_blocking);
        const auto refusal = co_await refusal_of_send(array);
        CHECK_MESSAGE(contains(refusal, busy), refusal);
        CHECK_FALSE(graph.end());
    }
    capturing_stream graph(kind::non_blocking);
    { const auto last = counted(4); }
    CHECK_FALSE(graph.end());
    CHECK(values_of(counted(4)) == std::vector{0, 1, 2, 3});
}

CUDA_TEST("cuda capture: memory whose last handle goes during a capture is free after it") {
    constexpr std::size_t size = std::size_t{256} << 20;
    const std::size_t before = free_memory();
    if (before == 0)
        co_return skip("the stand-in does not tell how much memory is free");
    capturing_stream graph(kind::blocking);
    { const shared_array<char> array(0, size); }
    CHECK(free_memory() <= before - size / 2);
    CHECK(graph.end());
    (void)counted(1);
    CHECK(free_memory() >= before - size / 4);
}

}  // namespace cuda_capture_test
