// SPDX-License-Identifier: BSL-1.0
// What an error tells: where and why an exception was thrown, where a worker crashed, where stopped
// workers were. And how to get an exception back as its own type.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;

// An exception type of this program, and how it crosses from a worker.
class overdrawn : public std::runtime_error {
public:
    explicit overdrawn(const std::string& account)
        : std::runtime_error("overdrawn: " + account), account_(account) {}
    const std::string& account() const noexcept { return account_; }

private:
    std::string account_;
};

template <>
inline const cohort::error_type<overdrawn> cohort::taught_error<overdrawn>{
    [](const overdrawn& e) { return e.account(); },
    [](const std::string& account) { return overdrawn(account); }};

void read_config(const std::string& path) {
    throw std::system_error(ENOENT, std::generic_category(), path);
}

void configure(int, const std::string& path) {
    try {
        read_config(path);
    } catch (...) {
        std::throw_with_nested(std::runtime_error("no configuration"));
    }
}

void pay(int, const std::string& account) { throw overdrawn(account); }

void check_ledger(int) { std::abort(); }

void wait_for_work() { std::this_thread::sleep_for(1h); }

void serve(int index) {
    if (index == 1)
        throw std::runtime_error("the queue is gone");
    wait_for_work();
}

asio::awaitable<void> trace() {
    try {
        co_await cohort::run(cohort::function<configure>("app.conf"), 1);
    } catch (const cohort::process_raised_exception& e) {
        fmt::print("{}\n", e.error().trace);
    }
}

asio::awaitable<void> own_type() {
    try {
        co_await cohort::run(cohort::function<pay>("savings"), 1);
    } catch (const cohort::process_raised_exception& failed) {
        try {
            std::rethrow_if_nested(failed);
        } catch (const overdrawn& e) {
            fmt::print("{} is overdrawn\n", e.account());
        }
    }
}

asio::awaitable<void> crashed() {
    try {
        co_await cohort::run(cohort::function<check_ledger>(), 1);
    } catch (const cohort::process_exited_exception& e) {  // what() has all of it
        const auto& crash = e.outcomes().front().crash.value();
        fmt::print("{}: {}\n", e.signal_name(), crash.frames.front());
    }
}

asio::awaitable<void> stuck() {
    // notice_period gives the other worker a second to get to where it will be stopped.
    auto group = co_await cohort::spawn(cohort::function<serve>(),
                                        cohort::options(2).stack_on_stop(true).notice_period(1s));
    const auto report = co_await group.wait();
    for (const auto& worker : report.outcomes)
        for (const auto& thread : worker.at_stop)
            for (const auto& call : thread.frames)
                if (call.function == "wait_for_work()")
                    fmt::print("worker {} was stopped in line {}\n", worker.index, call.line);
}

asio::awaitable<void> tour() {
    co_await trace();
    co_await own_type();
    co_await crashed();
    co_await stuck();
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    asio::io_context io;
    asio::co_spawn(io, tour(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}

// Prints (`...` stands for anything):
//   Traceback (most recent call last):
//     File "examples/errors.cpp", line 42, in configure(int, std::string const&)
//     File "examples/errors.cpp", line 37, in read_config(std::string const&)
//   std::system_error [generic:2]: app.conf: No such file or directory
//
//   The above exception was the direct cause of the following exception:
//
//   Traceback (most recent call last):
//     File "examples/errors.cpp", line 44, in configure(int, std::string const&)
//   std::runtime_error: no configuration
//   savings is overdrawn
//   SIGABRT: File "examples/errors.cpp", line 50, in check_ledger(int)
//   worker 0 was stopped in line 52
