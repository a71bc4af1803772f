// SPDX-License-Identifier: BSL-1.0
// Programs as workers: where they run, one command for each, one that is awaited alone, and the
// error of one that fails.

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <exception>

using namespace std::chrono_literals;

// The same program three times; each finds its index in its environment.
asio::awaitable<void> same_program() {
    auto report = co_await cohort::run(
        cohort::command("sh", "-c", "echo \"I am $COHORT_INDEX of $COHORT_SIZE, lr $1\"", "sh",
                        0.1),
        cohort::options(3).working_directory("/").env("LEVEL", 3).unset_env("LANG"));
    fmt::print("{} workers, all well: {}\n", report.outcomes.size(), report.success());
}

// A command of its own for each worker. grep exits with 1 if it finds nothing: a success here.
asio::awaitable<void> one_each() {
    auto search = [](int index) {
        return cohort::command("grep", "-q", index == 0 ? "root" : "nobody-of-that-name",
                               "/etc/passwd");
    };
    auto group =
        co_await cohort::spawn(cohort::command_for(search), cohort::options(2).success_codes(0, 1));
    co_await group.join();
    for (const auto& worker : group.outcomes())
        fmt::print("grep {}: {}\n", worker.index, worker.status.success() ? "found" : "not found");
}

// A failing program writes its error into $COHORT_ERROR_FILE: any text, or the JSON of torch's
// @record.
asio::awaitable<void> own_words() {
    try {
        co_await cohort::run(
            cohort::command("sh", "-c", "echo 'the disk is full' > $COHORT_ERROR_FILE; exit 3"), 2);
    } catch (const cohort::process_raised_exception& e) {
        fmt::print("worker {} said: {}\n", e.error_index(), e.error().message);
    }
}

// A program that does not exist is an error of the start: no worker has run then.
asio::awaitable<void> not_there() {
    try {
        co_await cohort::run(cohort::command("trian.py"), 2);
    } catch (const cohort::spawn_error& e) {
        fmt::print("{}\n", e.what());
    }
}

// One command, one outcome: an exit code is no exception, nor is the end of its time.
asio::awaitable<void> alone() {
    auto words = co_await cohort::execute(cohort::command("printf", "%s\\n", "words"), 10s);
    fmt::print("it wrote {}", words.out.text());
    auto late = co_await cohort::execute(cohort::command("sleep", 1000), 100ms);
    fmt::print("sleep: {}\n", late.cause);
}

asio::awaitable<void> all() {
    co_await same_program();
    co_await one_each();
    co_await alone();
    co_await own_words();
    co_await not_there();
}

int main() {
    asio::io_context io;
    asio::co_spawn(io, all(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}

// Prints (`...` stands for anything):
//   I am 0 of 3, lr 0.1
//   I am 1 of 3, lr 0.1
//   I am 2 of 3, lr 0.1
//   3 workers, all well: true
//   grep 0: found
//   grep 1: not found
//   it wrote words
//   sleep: timed_out
//   worker ... said: the disk is full
//   exec("trian.py"): No such file or directory (worker 0)
