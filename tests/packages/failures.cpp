// SPDX-License-Identifier: BSL-1.0
// A stranger's program: what the library throws is caught by type, on the other side of its border.

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

int divide(int index, int dividend) {
    if (index == dividend)
        std::_Exit(3);
    if (index == 0)
        throw std::domain_error("division by zero");
    return dividend / index;
}

template <class Work>
asio::awaitable<void> fail(Work work, int workers) {
    try {
        co_await cohort::run(work, workers);
        fmt::print("nothing was thrown\n");
    } catch (const cohort::process_raised_exception& e) {
        fmt::print("raised: {}: {}\n", e.error().type, e.error().message);
    } catch (const cohort::process_exited_exception& e) {
        fmt::print("exited: {}\n", e.exit_code());
    } catch (const cohort::spawn_error& e) {
        fmt::print("not started: {}\n", e.what());
    }
}

asio::awaitable<void> ask_too_much() {
    const auto report = co_await cohort::run(cohort::command("true"), 1);
    try {
        report.outcomes.at(0).result<int>();
    } catch (const cohort::result_error&) {
        fmt::print("no result\n");
    }
}

asio::awaitable<void> everything() {
    co_await fail(cohort::function<divide>(6), 1);
    co_await fail(cohort::function<divide>(0), 1);
    co_await fail(cohort::command("/nonexistent/program"), 1);
    co_await ask_too_much();
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    asio::io_context io;
    asio::co_spawn(io, everything(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}

// Prints (`...` stands for anything):
//   raised: std::domain_error: division by zero
//   exited: 3
//   not started: exec("/nonexistent/program"): No such file or directory (worker 0)
//   no result
