// SPDX-License-Identifier: BSL-1.0
// A host in which allocations of the library's own threads fail.
//   no_memory_host FIRST STEP
// Again and again in a process of its own: a group runs while the FIRST-th, (FIRST + STEP)-th, ...
// allocation fails. The group ends, or the process does, by std::terminate. Prints those that did
// not end so, and fails if there are any.
#include "failing_allocations.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace no_memory_host {
namespace {

using namespace std::chrono_literals;

std::atomic<int> left{0};  // until an allocation fails; 0: none fails
thread_local constinit bool is_users_thread = false;

bool allocation_fails() noexcept {
    return !is_users_thread && left > 0 && --left == 0;
}

void exit_or_sleep(int index) {
    if (index == 0)
        ::_exit(3);
    for (;;)
        ::pause();
}

asio::awaitable<void> print() {
    cohort::options how(2);
    how.stdout_to(cohort::lines(), cohort::capture()).stderr_to(cohort::capture());
    auto group =
        co_await cohort::spawn(cohort::command("sh", "-c", "echo a; echo b >&2; exit 3"), how);
    while (auto line = co_await group.output()) {
    }
    (void)co_await group.wait();
}

/// Without exceptions and stacks, because the JSON library, which reads them, allocates in
/// destructors.
asio::awaitable<void> stop() {
    cohort::options how(2);
    how.stderr_to(cohort::capture());
    (void)co_await cohort::run(cohort::function<exit_or_sleep>(), how);
}

asio::awaitable<void> feed() {
    auto group = co_await cohort::spawn(
        cohort::command("cat"),
        cohort::options(1).stdin_from(cohort::feed()).stdout_to(cohort::capture()));
    co_await group.write(0, "text");
    group.close_input(0);
    (void)co_await group.wait();
}

constexpr std::array scenes{print, feed, stop};

asio::awaitable<void> play(int which, int failing) {
    cohort::options warm(1);
    warm.stdout_to(cohort::capture());
    (void)co_await cohort::run(cohort::command("true"), warm);  // makes threads and the guardian
    left = failing;
    co_await scenes.at(static_cast<std::size_t>(which))();
}

enum exit_code { all_failures_tried = 42 };

/// Either a result or an exception is right.
[[noreturn]] void run(int which, int failing) {
    is_users_thread = true;
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::alarm(60);  // for one that hangs
    asio::io_context io;
    asio::co_spawn(io, play(which, failing), [](std::exception_ptr) {});
    io.run();
    ::_exit(left > 0 ? all_failures_tried : 0);
}

}  // namespace

int program(int argc, char** argv) {
    cohort::test::allocation_fails = &allocation_fails;
    cohort::worker_main(argc, argv);
    if (argc != 3)
        return 2;
    is_users_thread = true;
    bool is_well = true;
    for (int which = 0; which < static_cast<int>(scenes.size()); ++which)
        for (int failing = std::atoi(argv[1]);; failing += std::atoi(argv[2])) {
            const pid_t pid = ::fork();
            if (pid == 0)
                run(which, failing);
            int status = 0;
            ::waitpid(pid, &status, 0);
            if (WIFEXITED(status) && WEXITSTATUS(status) == all_failures_tried)
                break;
            if (status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT))
                continue;
            std::printf("scene %d, allocation %d: %s %d\n", which, failing,
                        WIFSIGNALED(status) ? "signal" : "status",
                        WIFSIGNALED(status) ? WTERMSIG(status) : status);
            is_well = false;
        }
    return is_well ? 0 : 1;
}

}  // namespace no_memory_host
