// SPDX-License-Identifier: BSL-1.0
// What workers print, and what they are given: last words, lines, the console, logs, input.

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>

// A command that fails: what it printed last stands in the exception.
asio::awaitable<void> last_words() {
    try {
        co_await cohort::run(cohort::command("gzip", "-d", "shards.gz"),
                             cohort::options().stderr_to(cohort::capture()));
    } catch (const cohort::process_exited_exception& e) {
        fmt::print("{}\n", e.what());
    }
}

// Lines as they come. The loop ends when the last worker has ended.
asio::awaitable<void> lines() {
    auto group = co_await cohort::spawn(
        cohort::command("sh", "-c", "echo \"epoch 1 of worker $COHORT_INDEX\"; echo slow >&2"),
        cohort::options(2).output_to(cohort::lines()));
    while (auto line = co_await group.output())
        fmt::print("{} {}: {}\n", line->index, line->stream, line->text);
    co_await group.join();
}

void greet(int index) { fmt::print("hello\n{} is ready\n", index); }  // runs in every worker

// To this program's console, with a tag before each line, and at the same time to memory.
asio::awaitable<void> tee() {
    auto report =
        co_await cohort::run(cohort::function<greet>(),
                             cohort::options(2).stdout_to(
                                 cohort::console().tag("[worker {index}] "), cohort::capture()));
    for (const auto& worker : report.outcomes)
        fmt::print("worker {} has printed {} bytes\n", worker.index, worker.out.total);
}

// A directory for the run: what each worker printed, why it failed, and a report.
asio::awaitable<void> logs(std::string directory) {
    auto group = co_await cohort::spawn(
        cohort::command("sh", "-c",
                        "echo working; test $COHORT_INDEX = 0 || "
                        "{ echo 'the disk is full' > $COHORT_ERROR_FILE; exit 1; }"),
        cohort::options(2)
            .on_failure(cohort::on_failure::keep_going)
            .logs(cohort::logs(directory).run_id("job42")));
    co_await group.wait();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
        if (entry.is_regular_file())
            fmt::print("{}\n", std::filesystem::relative(entry, directory).string());
}

// The same text for each worker.
asio::awaitable<void> same_text() {
    auto report = co_await cohort::run(
        cohort::command("wc", "-l"),
        cohort::options(2).stdin_from(cohort::bytes("one\ntwo\n")).stdout_to(cohort::capture()));
    fmt::print("worker 1 has counted {}", report.outcomes[1].out.text());
}

// A pipe to one worker, filled while it runs.
asio::awaitable<void> conversation() {
    auto group = co_await cohort::spawn(
        cohort::command("sed", "-u", "s/^/you said /"),
        cohort::options(1).stdin_from(cohort::feed()).stdout_to(cohort::lines()));
    co_await group.write(0, "hello\n");
    if (auto answer = co_await group.output())
        fmt::print("{}\n", answer->text);
    group.close_input(0);
    co_await group.join();
}

asio::awaitable<void> all(std::string directory) {
    co_await last_words();
    co_await lines();
    co_await tee();
    co_await logs(directory);
    co_await same_text();
    co_await conversation();
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    char directory[] = "/tmp/cohort_output_XXXXXX";
    if (mkdtemp(directory) == nullptr)
        return 1;
    asio::io_context io;
    asio::co_spawn(io, all(directory), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
    std::filesystem::remove_all(directory);
}

// Prints (`...` stands for anything):
//   process 0 terminated with exit code 1
//
//   -- its last words on stderr:
//   gzip: shards.gz: No such file or directory
//   0 stdout: epoch 1 of worker 0
//   0 stderr: slow
//   1 stdout: epoch 1 of worker 1
//   1 stderr: slow
//   [worker 0] hello
//   [worker 0] 0 is ready
//   [worker 1] hello
//   [worker 1] 1 is ready
//   worker 0 has printed 17 bytes
//   worker 1 has printed 17 bytes
//   job42/attempt_0/0/stdout.log
//   job42/attempt_0/0/stderr.log
//   job42/attempt_0/1/stdout.log
//   job42/attempt_0/1/stderr.log
//   job42/attempt_0/1/error.json
//   job42/report.json
//   worker 1 has counted 2
//   you said hello
