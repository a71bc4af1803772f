// SPDX-License-Identifier: BSL-1.0
// What the queue of lines keeps of a worker that has ended.
#include "output/lines/line_queue.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <malloc.h>

namespace line_queue_worker_test {

using cohort::stream;
using cohort::when_full;
using cohort::detail::line_run;
using cohort::output::line_queue;

namespace {

/// Lines of 40 bytes, newlines included.
std::shared_ptr<const line_run> run_of(int index, std::size_t count, stream from = stream::out) {
    auto run = std::make_shared<line_run>();
    run->index = index;
    run->from = from;
    for (std::size_t i = 0; i < count; ++i) {
        run->text += std::string(39, 'x') + "\n";
        run->lines.push_back({40, 1, true});
    }
    return run;
}

void end(line_queue& queue, int index, stream from) {
    queue.end_stream(index, 0, from, std::chrono::steady_clock::time_point());
}

/// Takes all lines. @return how many bytes are told as lost before them
std::uint64_t taken_loss(line_queue& queue) {
    std::uint64_t lost = 0;
    for (const auto& part : queue.take(SIZE_MAX))
        lost += part.lost.bytes;
    return lost;
}

/// How many bytes of memory the C library has handed out.
std::size_t memory_in_use() { return ::mallinfo2().uordblks; }

}  // namespace

TEST_CASE("line queue worker: one that has ended takes no memory after its last line") {
    line_queue queue(80);
    const auto pass = [&](int index) {
        queue.add(run_of(index, 3), when_full::drop_oldest);
        queue.add(run_of(index, 1, stream::err), when_full::block);
        end(queue, index, stream::out);
        end(queue, index, stream::err);
        queue.forget_worker(index);
        CHECK(queue.lost_bytes(index, 0, stream::out) == 80);
        CHECK(taken_loss(queue) == 80);
        CHECK(queue.lost_bytes(index, 0, stream::out) == 0);
        CHECK(queue.empty());
    };
    pass(0);
    const auto before = memory_in_use();
    for (int index = 1; index < 1'000; ++index)
        pass(index);
    CHECK(memory_in_use() < before + 10'000);
    CHECK(queue.lost_bytes() == 80'000);
    // Others still find the loudest worker, which none of those is.
    queue.add(run_of(1'000, 3), when_full::drop_oldest);
    CHECK(queue.lost_bytes(1'000, 0, stream::out) == 40);
}

TEST_CASE(
    "line queue worker: lines that are dropped after the end are counted until the end is told") {
    line_queue queue(80);
    queue.add(run_of(0, 2), when_full::drop_oldest);
    end(queue, 0, stream::out);
    queue.add(run_of(1, 1), when_full::drop_oldest);
    CHECK(queue.lost_bytes(0, 0, stream::out) == 40);
    queue.forget_worker(0);
    queue.add(run_of(1, 1), when_full::drop_oldest);
    CHECK(queue.lost_bytes() == 80);
    CHECK(taken_loss(queue) == 80);
    CHECK(queue.lost_bytes(0, 0, stream::out) == 0);
}

TEST_CASE("line queue worker: the loss of a stream that goes on is told") {
    line_queue queue(1'000);
    queue.leave_out(*run_of(0, 1));
    end(queue, 0, stream::err);
    queue.forget_worker(0);
    queue.add(run_of(0, 1), when_full::drop_oldest);
    CHECK(taken_loss(queue) == 40);
}

}  // namespace line_queue_worker_test
