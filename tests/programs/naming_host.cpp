// SPDX-License-Identifier: BSL-1.0
// A host that is killed while arrays have names in /dev/shm.
//   naming_host held METHOD  two arrays, and two workers; each worker makes an array and a child
//                            that ends only by SIGKILL. Workers and children write a byte to
//                            descriptor 9
//   naming_host late COUNT   runs a command, and writes a byte to descriptor 9; when descriptor 8
//                            comes to its end, runs another, makes so many arrays, and writes
//                            another byte
// Prints the names of its own arrays.
#include <cohort/cohort.hpp>

#include <asio.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace naming_host {
namespace {

constexpr int held = 9;
constexpr int gate = 8;

void say_ready() { (void)!::write(held, "\n", 1); }

cohort::shared_array<int> named_array() {
    cohort::shared_array<int> made(1);
    std::puts(made.name().c_str());
    std::fflush(stdout);
    return made;
}

/// A worker and its child, which holds the worker's array as well.
void hold_array(int) {
    const cohort::shared_array<int> array(1);
    for (const int signo : {SIGINT, SIGTERM, SIGHUP})
        std::signal(signo, SIG_IGN);
    (void)!::fork();
    say_ready();
    for (;;)
        ::pause();
}

asio::awaitable<void> hold_arrays(cohort::start_method method) {
    const auto first = named_array();
    const auto second = named_array();
    const auto how =
        cohort::options(2)
            .start_method(method)
            .grace_period(std::chrono::milliseconds(300))
            .cgroup(cohort::cgroup::off)  // so that only the guardian ends the children
            .fd(held, held);
    auto group = co_await cohort::spawn(cohort::function<hold_array>(), how);
    co_await group.join();
}

asio::awaitable<void> make_arrays_late(int count) {
    (void)co_await cohort::run(cohort::command("true"), 1);
    say_ready();
    char byte;
    (void)!::read(gate, &byte, 1);
    (void)co_await cohort::run(cohort::command("true"), 1);
    std::vector<cohort::shared_array<int>> arrays;
    for (int i = 0; i < count; ++i)
        arrays.push_back(named_array());
    say_ready();
    for (;;)
        ::pause();
}

}  // namespace

int program(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    cohort::set_sharing_strategy(cohort::sharing_strategy::file_system);
    const std::string_view what = argc > 1 ? argv[1] : "";
    asio::io_context context;
    const auto end = [](std::exception_ptr error) {
        if (error)
            std::terminate();
    };
    if (what == "held" && argc == 3)
        asio::co_spawn(context, hold_arrays(static_cast<cohort::start_method>(std::atoi(argv[2]))),
                       end);
    else if (what == "late" && argc == 3)
        asio::co_spawn(context, make_arrays_late(std::atoi(argv[2])), end);
    context.run();
    return 0;
}

}  // namespace naming_host
