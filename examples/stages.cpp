// SPDX-License-Identifier: BSL-1.0
// Stages with deadlines: each may be tried twice. When one has failed for good, the stages beside
// it are cancelled.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <fmt/core.h>

#include <chrono>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;

void fetch(int index, int attempt) {
    if (attempt == 1 && index == 1)
        throw std::runtime_error("connection refused");
}

struct stage {
    std::string name;
    std::chrono::milliseconds limit;
    std::function<asio::awaitable<cohort::group>(int attempt)> start;
};

// One attempt: all workers of the stage, within its limit. A group dropped here is stopped.
asio::awaitable<void> attempt(const stage& s, int number) {
    auto group = co_await s.start(number);
    if (co_await group.join(s.limit))
        co_return;
    const auto report = co_await group.stop();
    throw std::runtime_error(fmt::format("{}: not done after {}ms, {} workers stopped", s.name,
                                         s.limit.count(), report.outcomes.size()));
}

// A failed first attempt is tried again. A cancellation is no failure, so it is not.
asio::awaitable<void> run(const stage& s) {
    for (int number = 1;; ++number) {
        try {
            co_await attempt(s, number);
            break;
        } catch (const cohort::process_exception& error) {
            if (number == 2)
                throw;
            fmt::print("{}: worker {} failed, once more\n", s.name, error.error_index());
        }
    }
    fmt::print("{}: done\n", s.name);
}

// Runs beside another stage. The first failure is kept; the other stage is cancelled and fails too.
asio::awaitable<void> run_beside(const stage& s, std::exception_ptr& failure) {
    try {
        co_await run(s);
    } catch (...) {
        if (!failure)
            failure = std::current_exception();
        throw;
    }
}

void report(std::exception_ptr failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception& error) {
        fmt::print("{}\n", error.what());
    }
}

asio::awaitable<void> orchestrate() {
    const stage fetching{
        "fetch", 10s, [](int number) { return cohort::spawn(cohort::function<fetch>(number), 2); }};
    const stage training{"train", 200ms,
                         [](int) { return cohort::spawn(cohort::command("sleep", 1000), 3); }};
    const stage serving{"serve", 1h,
                        [](int) { return cohort::spawn(cohort::command("sleep", 1000), 1); }};

    co_await run(fetching);
    std::exception_ptr failure;
    try {
        // Side by side: if one fails, the other is cancelled, and its workers stopped before this
        // ends.
        co_await (run_beside(training, failure) && run_beside(serving, failure));
    } catch (const std::exception&) {  // && may tell of a cancellation only
        report(failure);
    }
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    asio::io_context io;
    asio::co_spawn(io, orchestrate(), [](std::exception_ptr error) {
        if (error)
            std::rethrow_exception(error);
    });
    io.run();
}

// Prints (`...` stands for anything):
//   fetch: worker 1 failed, once more
//   fetch: done
//   train: not done after 200ms, 3 workers stopped
