// SPDX-License-Identifier: BSL-1.0
// A program that is compiled and linked in several ways (see meson.build), to test its traces in
// each.
//   traced call|coroutine|crash|many|lambda|closure
//                                   prints the failure of its only worker, then the frames as
//                                   values, a line each:
//                                   FUNCTION|FILE|LINE|inlined or -|MODULE
//                                   and last "line N": the line of the failure in this file
#include "../support/handed_coroutine.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <coroutine>
#include <csignal>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/resource.h>

namespace traced {

constexpr int line_of_throw = __LINE__ + 3;
inline void check(int value) {
    if (value > 5)
        throw std::out_of_range("value " + std::to_string(value) + " is too large");
}

[[gnu::always_inline]] inline int load(int value) {
    check(value);
    return value * 2;
}

[[gnu::noinline]] int train(int value) { return load(value) + 1; }

cohort::test::eager fail_in_steps(std::coroutine_handle<>& resumed, int value) {
    co_await cohort::test::handed{resumed};
    train(value);
}

constexpr int line_of_fault = __LINE__ + 2;
[[gnu::noinline]] void write_to(std::uintptr_t address) {
    *reinterpret_cast<volatile int*>(address) = 1;
}

void work(int, const std::string& how) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    if (how == "call") {
        train(7);
    } else if (how == "coroutine") {
        std::coroutine_handle<> waiting;
        fail_in_steps(waiting, 7);
        waiting.resume();
    } else {
        write_to(0x10);
    }
}

/// Its last arguments are passed on the stack. As in the two below, the call of train is no tail
/// call, which would leave no frame of the caller.
int work_on_many(int, int, int, int, int, int, int, int value) { return train(value) + 1; }

constexpr auto work_in_lambda = [](int, int value) { return train(value) + 1; };

}  // namespace traced

namespace {

void print(const std::vector<cohort::stack_frame>& frames) {
    for (const auto& frame : frames)
        fmt::print("{}|{}|{}|{}|{}\n", frame.function, frame.file, frame.line,
                   frame.inlined ? "inlined" : "-", frame.module);
}

asio::awaitable<void> run_worker(std::string how) {
    if (how == "many") {
        co_await cohort::run(cohort::function<traced::work_on_many>(1, 2, 3, 4, 5, 6, 7), 1);
    } else if (how == "lambda") {
        co_await cohort::run(cohort::function<traced::work_in_lambda>(7), 1);
    } else if (how == "closure") {
        int value = 7;
        const auto work = [&value](int) { return traced::train(value) + 1; };
        co_await cohort::run(cohort::closure(work),
                             cohort::options(1).start_method(cohort::start_method::fork));
    } else {
        co_await cohort::run(cohort::function<traced::work>(how), 1);
    }
}

asio::awaitable<void> run(std::string how) {
    try {
        co_await run_worker(how);
    } catch (const cohort::process_raised_exception& error) {
        fmt::print("{}\n", error.what());
        print(error.error().frames);
        fmt::print("line {}\n", traced::line_of_throw);
    } catch (const cohort::process_exited_exception& error) {
        fmt::print("{}\n", error.what());
        if (const auto& crash = error.outcomes().at(0).crash)
            print(crash->frames);
        fmt::print("line {}\n", traced::line_of_fault);
    }
}

}  // namespace

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    if (argc != 2)
        return 2;
    asio::io_context context;
    asio::co_spawn(context, run(argv[1]), [](std::exception_ptr error) {
        if (error)
            std::rethrow_exception(error);
    });
    context.run();
}
