// SPDX-License-Identifier: BSL-1.0
// Arrays in shared memory: workers read and write the memory of this process, without a copy.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <atomic>
#include <numeric>
#include <vector>

using cohort::shared_array;

// Worker i adds up row i. `sums` is the caller's memory, so there is nothing to return.
void add_row(int index, const shared_array<const float>& table, const shared_array<double>& sums,
             const cohort::shared_value<std::atomic<int>>& done) {
    const auto row = table.select(0, static_cast<std::size_t>(index));
    sums(index) = std::accumulate(row.begin(), row.end(), 0.0);
    ++*done;
}

// An array in a result outlives the worker that made it.
shared_array<float> make_ramp(int index, std::size_t size) {
    shared_array<float> ramp(size);
    for (std::size_t i = 0; i < size; ++i)
        ramp(i) = static_cast<float>(i) * static_cast<float>(index + 1);
    return ramp;
}

// A command in any language needs only its standard library.
constexpr auto doubles_all = R"(
import json, mmap, os
w = json.loads(os.environ["COHORT_SHARED_table"])
values = memoryview(mmap.mmap(w["fd"], w["bytes"])).cast("f")
for i in range(len(values)):
    values[i] *= 2
)";

asio::awaitable<void> orchestrate() {
    const std::vector<float> loaded{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const auto table = cohort::share_memory(loaded).reshape(4, 3);  // the only copy
    const shared_array<double> sums(4);
    const cohort::shared_value<std::atomic<int>> done;
    co_await cohort::run(cohort::function<add_row>(table, sums, done), 4);
    fmt::print("{} rows: {} {} {} {}\n", done->load(), sums(0), sums(1), sums(2), sums(3));

    auto python = cohort::command("python3", "-c", doubles_all);
    python.share("table", table);
    co_await cohort::run(python, 1);
    fmt::print("doubled: {} ... {}\n", table(0, 0), table(3, 2));

    const auto ramps = co_await cohort::run(cohort::function<make_ramp>(1'000'000), 2);
    for (const auto& worker : ramps.outcomes) {
        const auto ramp = worker.result<shared_array<float>>();
        fmt::print("ramp {}: {} elements, the last is {}\n", worker.index, ramp.size(),
                   ramp(ramp.size() - 1));
    }

    // One descriptor for many small arrays.
    cohort::shared_arena arena(1 << 16);
    std::vector<shared_array<int>> small;
    for (int i = 0; i < 100; ++i)
        small.push_back(arena.array<int>(10));
    const auto one_memory = small.front().shares_memory_with(small.back());
    fmt::print("{} arrays, {}\n", small.size(), one_memory ? "one memory" : "many");

    // A limit is an exception that names it.
    try {
        (void)arena.array<double>(1 << 20);
    } catch (const cohort::sharing_error& e) {
        fmt::print("{}\n", e.what());
    }
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    asio::io_context io;
    asio::co_spawn(io, orchestrate(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}

// Prints (`...` stands for anything):
//   4 rows: 6 15 24 33
//   doubled: 2 ... 24
//   ramp 0: 1000000 elements, the last is 999999
//   ramp 1: 1000000 elements, the last is 1999998
//   100 arrays, one memory
//   cohort: shared array of 8.0 MiB: the arena is full: 6.2 KiB of 64.0 KiB are used
