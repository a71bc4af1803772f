// SPDX-License-Identifier: BSL-1.0
// A host that starts two workers of itself and prints how they ended. The variable FORGETFUL names
// the mistake:
//   never    nobody calls worker_main; a worker would print a line
//   main     the workers' main does not call worker_main; it prints a line and ends with 0
//   usage    the workers' main does not know their argument; it prints a line and ends with 2
//   spawns   the workers' main starts a group itself, without end if nothing stops it
//   static   a static initialiser starts a group, in the workers too; worker_main is called
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace forgetful {
namespace {

bool wrong(std::string_view what) {
    const char* said = std::getenv("FORGETFUL");
    return said != nullptr && said == what;
}

std::string error_at_start;  // constructed before the initialiser below runs
std::string answer(int) { return error_at_start; }

asio::awaitable<void> run_group() {
    auto group = co_await cohort::spawn(
        cohort::function<answer>(),
        cohort::options(2).env("WORKER", 1).on_failure(cohort::on_failure::keep_going));
    for (const auto& worker : (co_await group.wait()).outcomes) {
        fmt::print("worker {}: {}, {}{}\n", worker.index, worker.success() ? "good" : "bad",
                   worker.has_result() ? worker.result<std::string>() : to_string(worker.status),
                   worker.note().empty() ? "" : ": " + worker.note());
    }
    co_await group.join();
}

/// Starts the group. @return the text of the exception
std::string start_group() {
    std::string error = "nothing was thrown";
    asio::io_context context;
    try {
        asio::co_spawn(context, run_group(), [&error](std::exception_ptr e) {
            try {
                if (e)
                    std::rethrow_exception(e);
            } catch (const std::exception& thrown) {
                error = thrown.what();
            }
        });
        context.run();
    } catch (const std::exception& thrown) {
        error = thrown.what();
    }
    return error;
}

/// Does nothing in the programs that are compiled together with this one: FORGETFUL is not set.
const bool initialised = [] {
    if (wrong("static") && std::getenv("WORKER") != nullptr)
        error_at_start = start_group();
    return true;
}();

}  // namespace

int program(int argc, char** argv) {
    const bool is_host = argc == 1;  // workers and the fork server get an argument
    if (wrong("static") || (is_host && !wrong("never")))
        cohort::worker_main(argc, argv);
    if (std::getenv("WORKER") != nullptr && !wrong("spawns") && !wrong("static")) {
        fmt::print("main in a worker\n");
        return wrong("usage") ? 2 : 0;
    }
    const auto error = start_group();
    fmt::print("{}: {}\n", std::getenv("WORKER") != nullptr ? "worker" : "host", error);
    return 0;
}

}  // namespace forgetful
