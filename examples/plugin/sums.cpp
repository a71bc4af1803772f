// SPDX-License-Identifier: BSL-1.0
// The library that the extension and the worker program link. It knows nothing of Python.
#include "sums.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <utility>

using namespace std::chrono_literals;

// Runs in every worker. The worker program finds it by its name.
double sum_of(int index, const std::vector<std::string>& files) {
    const auto& file = files.at(static_cast<std::size_t>(index));
    std::ifstream in(file);
    double sum = 0;
    double number = 0;
    while (in >> number)
        sum += number;
    if (!in.eof())
        throw std::runtime_error(fmt::format("cannot read the numbers in {}", file));
    return sum;
}

namespace {

asio::awaitable<double> sum_of_workers(std::vector<std::string> files, std::string program,
                                       std::function<bool()> interrupted) {
    auto group = co_await cohort::spawn(
        cohort::function<sum_of>(files),
        cohort::options(static_cast<int>(files.size())).executable(std::move(program)));
    while (!co_await group.join(100ms))
        if (interrupted())
            co_await group.stop();  // join throws group_stopped then
    double sum = 0;
    for (const auto& worker : group.outcomes())
        sum += worker.result<double>();
    co_return sum;
}

}  // namespace

double add_up(std::vector<std::string> files, std::string program,
              std::function<bool()> interrupted) {
    asio::io_context io;
    double sum = 0;
    asio::co_spawn(io, sum_of_workers(std::move(files), std::move(program), std::move(interrupted)),
                   [&sum](std::exception_ptr e, double result) {
                       if (e)
                           std::rethrow_exception(e);
                       sum = result;
                   });
    io.run();
    return sum;
}

int worker_program(int argc, char** argv) {
    cohort::worker_main(argc, argv);  // in a worker: runs sum_of and never returns
    fmt::print(stderr, "this program is started by the extension module\n");
    return 2;
}
