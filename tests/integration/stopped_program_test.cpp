// SPDX-License-Identifier: BSL-1.0
// Programs that are stopped for a while, as by Ctrl-Z: all their deadlines pass at once.
#include "live_support.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stopped_program_test {

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

/// A program that stops itself while a console that nobody reads holds up the end of a worker.
class stuck_program {
public:
    stuck_program() {
        std::array<int, 2> console{};
        REQUIRE(::pipe2(console.data(), O_CLOEXEC) == 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::dup2(console[1], STDOUT_FILENO);
            ::_exit(keeps_text() ? 0 : 1);
        }
        ::close(console[1]);
        console_ = console[0];
    }

    stuck_program(const stuck_program&) = delete;
    stuck_program& operator=(const stuck_program&) = delete;
    ~stuck_program() { ::close(console_); }

    void await_stop() const {
        int status = 0;
        REQUIRE(::waitpid(pid_, &status, WUNTRACED) == pid_);
        REQUIRE(WIFSTOPPED(status));
    }
    void go_on() const { ::kill(pid_, SIGCONT); }
    int exit_code() const {
        int status = 0;
        ::waitpid(pid_, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

private:
    static bool keeps_text() {
        bool kept = false;
        asio::io_context io;
        run_coroutine(io, stop_meanwhile(kept));
        return kept;
    }
    static asio::awaitable<void> stop_meanwhile(bool& kept) {
        auto how = cohort::options(1).stdout_to(cohort::console()).flush_timeout(1s);
        auto group = co_await cohort::spawn(
            cohort::command("sh", "-c", "echo kept >&2; head -c 200000 /dev/zero"),
            how.stderr_to(cohort::capture()));
        const pid_t worker = group.pids().front();
        while (::kill(worker, 0) == 0)
            std::this_thread::yield();
        // The streams of this group are read after those of the worker that has ended.
        (void)co_await cohort::run(cohort::command("true"),
                                   cohort::options(1).stderr_to(cohort::capture()));
        ::raise(SIGSTOP);
        const auto report = co_await group.wait();
        kept = report.outcomes.front().err.head == "kept\n";
    }

    pid_t pid_ = -1;
    int console_ = -1;  // what it prints
};

}  // namespace

TEST_CASE("stopped program: what was captured before the stop is kept") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    const leak_guard guard;
    std::array<stuck_program, 8> programs;
    for (auto& each : programs)
        each.await_stop();
    // Longer than the flush timeout and the time that the engine gives the output thread.
    std::this_thread::sleep_for(3s);
    for (auto& each : programs)
        each.go_on();
    for (auto& each : programs)
        CHECK(each.exit_code() == 0);
}

}  // namespace stopped_program_test
