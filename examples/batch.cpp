// SPDX-License-Identifier: BSL-1.0
// A job runner: batch FILE [AT_ONCE]. Runs each line of the file by the shell, with a time limit
// and new attempts, keeps what they print in the directory `jobs`, and a report in `jobs.json`.

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

using namespace std::chrono_literals;

asio::awaitable<void> run_jobs(std::vector<std::string> lines, int at_once) {
    auto job = [&](int index) { return cohort::command("sh", "-c", lines[std::size_t(index)]); };
    auto group = co_await cohort::spawn(
        cohort::command_for(job),
        cohort::options(int(lines.size()))
            .at_once(at_once)
            .worker_time_limit(10min)
            .restart(cohort::restarts(2).within(1h).backoff(100ms, 30s).jitter(0.2))
            .on_failure(cohort::on_failure::keep_going)
            .logs(cohort::logs("jobs")));
    int done = 0, failed = 0, again = 0;
    while (auto end = co_await group.next()) {
        ++(end->restarted ? again : end->success() ? done : failed);
        if (::isatty(STDOUT_FILENO)) {
            fmt::print("\r{} done, {} failed, {} new attempts, {} run, {} wait ", done, failed,
                       again, group.alive(), group.waiting());
            std::fflush(stdout);
        }
    }
    auto report = co_await group.wait();
    std::ofstream("jobs.json") << cohort::to_json(report) << '\n';
    fmt::print("\n{} done, {} failed, {} new attempts\n", done, failed, again);
    for (const auto& end : report.outcomes)
        if (!end.success())
            fmt::print("line {}, {} times: {}, {}\n", end.index + 1, end.attempt + 1, end.work(),
                       end.status);
    if (!report.success())
        fmt::print("what they printed is in {}\n", group.log_directory().parent_path().string());
}

int main(int argc, char** argv) {
    std::ifstream file(argc > 1 ? argv[1] : "");
    if (!file)
        return fmt::print(stderr, "usage: batch FILE [AT_ONCE]\n"), 2;
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    asio::io_context io;
    const int at_once = argc > 2 ? std::atoi(argv[2]) : 8;
    asio::co_spawn(io, run_jobs(lines, at_once), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}

// Prints (`...` stands for anything):
//
//   3 done, 1 failed, 3 new attempts
//   line 3, 3 times: sh -c 'exit 3', exit code 3
//   what they printed is in ...
