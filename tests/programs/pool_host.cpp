// SPDX-License-Identifier: BSL-1.0
// A host that ends with a live pool, whose workers run tasks. All its workers hold descriptor 9, so
// that its reader sees end of file when all are gone.
//   pool_host HOW METHOD    HOW: return, exit, kill (waits for SIGKILL), copy (forks) or
//                           stopped (its call is answered while this host is stopped)
#include <cohort/cohort.hpp>

#include <asio.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace pool_host {
namespace {

constexpr int held = 9;
constexpr int hears = 7;

int run_for_ever() {
    (void)!::write(hears, "\n", 1);
    for (;;)
        ::pause();
}

void do_nothing() {}

/// Stops its host for longer than the call may run, and returns at once.
int stop_host() {
    const pid_t host = cohort::this_worker::parent();
    if (::fork() == 0) {
        ::usleep(1'000'000);  // the time is what matters
        ::kill(host, SIGCONT);
        ::_exit(0);
    }
    ::kill(host, SIGSTOP);
    return 7;
}

/// @return the exit code: that of the call, 1: it was late
int call_while_stopped(asio::io_context& io) {
    int code = 2;
    cohort::async_start_pool(io, 1, [&](std::exception_ptr, cohort::pool started) {
        const auto pool = std::make_shared<cohort::pool>(std::move(started));
        pool->async_submit(
            cohort::task<stop_host>(), std::chrono::milliseconds(500),
            [&, pool](std::exception_ptr error, int value) { code = error ? 1 : value; });
    });
    io.run();
    return code;
}

cohort::start_method method_of(std::string_view name) {
    if (name == "fork")
        return cohort::start_method::fork;
    return name == "spawn" ? cohort::start_method::spawn : cohort::start_method::forkserver;
}

/// Starts a pool of two, and returns when both workers run a task.
cohort::pool start(asio::io_context& io, cohort::start_method method) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0)
        std::abort();
    cohort::pool pool;
    cohort::async_start_pool(
        io, cohort::pool_options(2).start_method(method).fd(pipe[1], hears).fd(held, held),
        [&](std::exception_ptr error, cohort::pool started) {
            if (error)
                std::rethrow_exception(error);
            pool = std::move(started);
        });
    io.run();
    for (int i = 0; i < 2; ++i)
        pool.async_submit(cohort::task<run_for_ever>(),
                          [](std::exception_ptr, int) { std::puts("a task ended"); });
    char byte = 0;
    for (int i = 0; i < 2; ++i)
        if (::read(pipe[0], &byte, 1) != 1)
            std::abort();
    return pool;
}

/// What the pool does in a forked copy of its host. @return the copy's exit code
int use_in_copy(cohort::pool pool) {
    int refused = 0;
    asio::io_context io;
    pool.async_submit(cohort::task<do_nothing>(),
                      asio::bind_executor(io, [&](std::exception_ptr error) {
                          try {
                              if (error)
                                  std::rethrow_exception(error);
                          } catch (const std::system_error& e) {
                              refused += e.code() == std::errc::no_child_process ? 1 : 0;
                          }
                      }));
    io.run();
    return refused == 1 ? 0 : 1;
}

}  // namespace

int program(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    if (argc != 3)
        return 2;
    const std::string_view how = argv[1];
    auto& io = *new asio::io_context;  // it lives until the program has ended
    if (how == "stopped")
        return call_while_stopped(io);
    auto pool = start(io, method_of(argv[2]));
    if (how == "exit")
        std::exit(3);
    if (how == "kill") {
        (void)!::write(held, "\n", 1);
        for (;;)
            ::pause();
    }
    if (how == "copy") {
        const pid_t copy = ::fork();
        if (copy == 0)
            ::_exit(use_in_copy(std::move(pool)));
        int status = -1;
        ::waitpid(copy, &status, 0);
        if (status != 0 || pool.stats().size != 2)
            return 4;
    }
    return 0;
}

}  // namespace pool_host
