// SPDX-License-Identifier: BSL-1.0
// Arrays in the memory of a CUDA device: workers use the memory of this process, without a copy.
#include <cohort/cohort.hpp>
#include <cohort/cuda.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <numeric>
#include <string>
#include <vector>

namespace cuda = cohort::cuda;

// Where a program would start kernels with data(), this one computes on the host.
void add_one(int index, const cuda::shared_array<float>& table) {
    const auto row = table.select(0, static_cast<std::size_t>(index));
    std::vector<float> values(row.size());
    row.copy_to(values);
    for (float& value : values)
        value += 1;
    row.copy_from(values);
}

// The driver keeps the memory as long as anybody uses it, so the worker may end.
cuda::shared_array<int> make_ramp(int /*index*/, int size) {
    std::vector<int> values(static_cast<std::size_t>(size));
    std::iota(values.begin(), values.end(), 0);
    cuda::shared_array<int> ramp(0, size);
    ramp.copy_from(values);
    return ramp;
}

std::string why_not(int /*index*/) { return cuda::why_not(); }

asio::awaitable<void> orchestrate() {
    if (!cuda::available()) {  // it has tried
        fmt::print("{}\n", cuda::why_not());
        co_return;
    }
    const cuda::shared_array<float> table(0, 4, 256);
    co_await cohort::run(cohort::function<add_one>(table), 4);
    std::vector<float> values(table.size());
    table.copy_to(values);
    fmt::print("sum of {} rows: {}\n", table.shape()[0],
               std::accumulate(values.begin(), values.end(), 0.0F));

    const auto report = co_await cohort::run(cohort::function<make_ramp>(1000), 1);
    const auto ramp = report.outcomes[0].result<cuda::shared_array<int>>();
    int last = 0;
    ramp.select(0, 999).copy_to({&last, 1});
    fmt::print("{} elements on device {}, the last is {}\n", ramp.size(), ramp.device(), last);

    // A device maps 2 MiB at least, so small arrays share an arena.
    const cuda::shared_arena arena(0, 1 << 20);
    const auto one = arena.array<float>(16);
    const auto other = arena.array<int>(3, 3);
    fmt::print("two arrays, {}\n", one.shares_memory_with(other) ? "one memory" : "two");

    // CUDA works in no forked copy of a process that has used it.
    const auto how = cohort::options(1).start_method(cohort::start_method::fork);
    const auto forked = co_await cohort::run(cohort::function<why_not>(), how);
    fmt::print("{}\n", forked.outcomes[0].result<std::string>());
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
//   sum of 4 rows: 1024
//   1000 elements on device 0, the last is 999
//   two arrays, one memory
//   cohort: CUDA: Cannot re-initialize CUDA in forked subprocess: ...
