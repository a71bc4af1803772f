// SPDX-License-Identifier: BSL-1.0
// The three start methods of function workers, and daemonic workers.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <string>
#include <vector>

std::vector<std::string> model;  // slow to load

void load_model() { model = {"north", "east", "south", "west"}; }

// Runs in a worker that the fork server has made. The fork server has called load_model() once.
std::string infer(int index) { return model.at(static_cast<std::size_t>(index)); }

// A daemonic worker: it may not start groups of its own.
std::string start_another(int) {
    try {
        asio::io_context io;
        auto group = cohort::spawn(io, cohort::command("true"), 1, asio::use_future);
        io.run();
        return fmt::format("{} worker", group.get().size());
    } catch (const cohort::spawn_error& e) {
        return e.what();
    }
}

asio::awaitable<void> orchestrate() {
    using cohort::start_method;
    auto served = co_await cohort::run(cohort::function<infer>(),
                                       cohort::options(4).start_method(start_method::forkserver));
    for (const auto& worker : served.outcomes)
        fmt::print("forkserver: {}\n", worker.result<std::string>());

    // fork: the worker is a copy of this process, with the callable and all that it refers to.
    const std::vector<int> numbers{2, 3, 5, 7};
    const auto square = [&numbers](int index) {
        const int number = numbers[static_cast<std::size_t>(index)];
        return number * number;
    };
    auto copies = co_await cohort::run(cohort::closure(square),
                                       cohort::options(4).start_method(start_method::fork));
    for (const auto& worker : copies.outcomes)
        fmt::print("fork: {}\n", worker.result<int>());

    auto helper =
        co_await cohort::run(cohort::function<start_another>(), cohort::options(1).daemon(true));
    fmt::print("daemon: {}\n", helper.outcomes.at(0).result<std::string>());
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    cohort::forkserver_preload<load_model>();
    asio::io_context io;
    asio::co_spawn(io, orchestrate(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}

// Prints (`...` stands for anything):
//   forkserver: north
//   forkserver: east
//   forkserver: south
//   forkserver: west
//   fork: 4
//   fork: 9
//   fork: 25
//   fork: 49
//   daemon: daemonic processes are not allowed to have children: Operation not permitted
