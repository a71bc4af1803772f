// SPDX-License-Identifier: BSL-1.0
// Without coroutines: a callback, and a future for a program that has a thread to spare.

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <memory>

int main() {
    // Callbacks: the handler shares the ownership of the group, because a dropped group is stopped.
    asio::io_context io;
    cohort::spawn(io, cohort::command("true"), 2,
                  [](std::exception_ptr error, cohort::group started) {
                      if (error)
                          std::rethrow_exception(error);
                      auto group = std::make_shared<cohort::group>(std::move(started));
                      group->wait([group](std::exception_ptr, cohort::report report) {
                          fmt::print("callback: {} workers, all well: {}\n", report.outcomes.size(),
                                     report.success());
                      });
                  });
    io.run();

    // A future: a thread of Asio's system_context sets it; the pool is the group's executor.
    asio::thread_pool pool(1);
    auto group = cohort::spawn(pool, cohort::command("false"), 1, asio::use_future).get();
    try {
        group.join(asio::use_future).get();
    } catch (const cohort::process_exited_exception& e) {
        fmt::print("future: {}\n", e.what());
    }
}

// Prints (`...` stands for anything):
//   callback: 2 workers, all well: true
//   future: process 0 terminated with exit code 1
