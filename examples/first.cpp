// SPDX-License-Identifier: BSL-1.0
// The program of the README: four workers, one of which fails.

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

void train(int index, const std::string& dataset, int epochs) {  // runs in every worker
    if (index == 2)
        throw std::runtime_error(fmt::format("no shard 2 in {}, {} epochs to go", dataset, epochs));
}

asio::awaitable<void> orchestrate() {
    auto group = co_await cohort::spawn(cohort::function<train>("mnist", 10), 4);
    try {
        while (!co_await group.join(1s))
            fmt::print("{} of {} still at work\n", group.alive(), group.size());
    } catch (const cohort::process_raised_exception& e) {
        fmt::print("worker {} failed: {}\n", e.error_index(), e.what());
    }
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);  // in a worker process: runs train and never returns
    asio::io_context io;
    asio::co_spawn(io, orchestrate(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}

// Prints (`...` stands for anything):
//   worker 2 failed:
//
//   -- Process 2 terminated with the following error:
//   Traceback (most recent call last):
//     File "examples/first.cpp", line 16, in train(int, std::string const&, int)
//   std::runtime_error: no shard 2 in mnist, 10 epochs to go
