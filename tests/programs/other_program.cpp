// SPDX-License-Identifier: BSL-1.0
// A program that workers of another program execute: it has one of that program's functions.
//   other_program host PROGRAM    starts a worker that executes PROGRAM, and prints its result;
//                                 never calls worker_main
#include "../support/known_functions.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <exception>
#include <string>
#include <string_view>

namespace other_program {
namespace {

asio::awaitable<void> run_in(std::string program) {
    const auto work = cohort::function<cohort::test::where_it_is>("hosted");
    const auto how = cohort::options(1).executable(std::move(program));
    const auto done = co_await cohort::run(work, how);
    fmt::print("{}\n", done.outcomes.at(0).result<std::string>());
}

}  // namespace

int program(int argc, char** argv) {
    if (argc < 3 || std::string_view(argv[1]) != "host") {
        cohort::worker_main(argc, argv);
        return 2;
    }
    asio::io_context io;
    asio::co_spawn(io, run_in(argv[2]), [](std::exception_ptr error) {
        if (error)
            std::rethrow_exception(error);
    });
    io.run();
    return 0;
}

}  // namespace other_program
