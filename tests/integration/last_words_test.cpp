// SPDX-License-Identifier: BSL-1.0
// Workers that end in ways in which what tells of the end could get in its own way.
#include "live_support.hpp"
#include "scratch.hpp"
#include "trace_support.hpp"
#include "worker_support.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace last_words_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;

namespace {

struct throws_at_exit {
    ~throws_at_exit() noexcept(false) { throw std::runtime_error("from a static destructor"); }
};

void throw_twice(int) {
    leave_no_core();
    static throws_at_exit last;
    throw std::logic_error("from the function");
}

void return_and_throw(int) {
    leave_no_core();
    static throws_at_exit last;
}

void crash_after_vfork(int) {
    leave_no_core();
    if (const pid_t child = ::vfork(); child == 0)
        std::abort();  // it has this memory
    else
        ::waitpid(child, nullptr, 0);
    std::abort();
}

void crash_without_room(int) {
    leave_no_core();
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    std::abort();
}

/// Is sent the stop signal while it is put into words.
class stopped_meanwhile : public std::exception {
public:
    const char* what() const noexcept override {
        ::kill(::getpid(), SIGTERM);
        return "said to the end";
    }
};

void fail_when_stopped(int) { throw stopped_meanwhile(); }

void throw_without_room(int) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    throw std::runtime_error("nobody hears of it");
}

void crash_with_little_room(int) {
    leave_no_core();
    const rlimit little{600, RLIM_INFINITY};  // the head of the record, not its calls
    ::setrlimit(RLIMIT_FSIZE, &little);
    *static_cast<volatile int*>(nullptr) = 1;
}

void crash_at_alarm(int) {
    leave_no_core();
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, SIGALRM);
    ::sigprocmask(SIG_BLOCK, &only, nullptr);
    ::raise(SIGALRM);
    std::abort();
}

void exec_another(int) {
    const int ready_end = ready::number;
    ::fcntl(ready_end, F_SETFD, 0);
    ::execl("/bin/sh", "sh", "-c",
            ("echo >&" + std::to_string(ready_end) + "; exec sleep 1000").c_str(), nullptr);
}

void replace_descriptors(int, const std::string& path) {
    const int ready_end = ready::number;
    for (int fd = 3; fd < 256; ++fd)
        if (fd != ready_end)
            ::close(fd);
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    for (int fd = 3; fd < 256; ++fd)
        if (fd != file && fd != ready_end)
            ::dup2(file, fd);
    say_ready();
    sleep_until_killed();
}

void wait_here(int) {
    say_ready();
    sleep_until_killed();
}

cohort::outcome stopped_when_ready(auto work, cohort::options how) {
    cohort::report result;
    run_coroutine(
        [](cohort::report& into, auto work, cohort::options how) -> asio::awaitable<void> {
            ready waits(co_await asio::this_coro::executor);
            auto group =
                co_await cohort::spawn(std::move(work), how.fd(waits.child_end(), ready::number));
            co_await waits.wait(1);
            into = co_await group.stop();
        }(result, std::move(work), std::move(how)));
    return result.outcomes.at(0);
}

void end_when_asked(int) { wait_for_stop(); }

}  // namespace

TEST_CASE(
    "last words: a static destructor that throws does not take the function's exception away") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<throw_twice>());
    CHECK(worker.cause == cause::raised);
    CHECK(worker.error.value().message == "from the function");
    CHECK(worker.status.signal() == SIGABRT);
}

TEST_CASE("last words: a static destructor that throws after the return is a failure") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<return_and_throw>());
    CHECK_FALSE(worker.success());
    CHECK(worker.status.signal() == SIGABRT);
    CHECK(contains(worker.note(), "after returning"));
}

TEST_CASE("last words: a vfork child that crashes does not use up the worker's crash record") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<crash_after_vfork>());
    CHECK(worker.status.signal() == SIGABRT);
    REQUIRE(worker.crash);
    if (names_are_read)
        CHECK(place_of(worker.crash->frames, "crash_after_vfork") == 0);
}

TEST_CASE("last words: a crash without room for its record ends by its own signal") {
    const leak_guard guard;
    CHECK(end_of(cohort::function<crash_without_room>()).status.signal() == SIGABRT);
}

TEST_CASE("last words: the stop signal waits until an exception is recorded") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<fail_when_stopped>());
    CHECK(worker.cause == cause::raised);
    CHECK(worker.error.value().message == "said to the end");
    CHECK(worker.status.signal() == SIGTERM);
}

TEST_CASE("last words: an exception without room for its record ends the worker as usual") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<throw_without_room>());
    CHECK(worker.status.exit_code() == 1);
    CHECK_FALSE(worker.success());
}

TEST_CASE("last words: a crash with room for half of its record reports that half") {
    if (crashes_are_sanitized)
        return skip(sanitizer_tells);
    const leak_guard guard;
    const auto worker = end_of(cohort::function<crash_with_little_room>());
    CHECK(worker.status.signal() == SIGSEGV);
    CHECK(worker.crash.value().signal == SIGSEGV);
}

TEST_CASE("last words: a timer of the worker's own does not cut the stack of a crash") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<crash_at_alarm>());
    CHECK(worker.status.signal() == SIGABRT);
    if (!crashes_are_sanitized)
        CHECK_FALSE(worker.crash.value().frames.empty());
}

TEST_CASE("last words: a function that has executed another program is not asked, but stopped") {
    const leak_guard guard;
    const auto worker = stopped_when_ready(cohort::function<exec_another>(),
                                           cohort::options(1).stack_on_stop(true));
    CHECK(worker.cause == cause::stopped);
    CHECK(worker.status.signal() == SIGTERM);
}

TEST_CASE("last words: stacks are not written into what the program has opened in their place") {
    const leak_guard guard;
    const scratch_directory scratch;
    const auto path = scratch.path() + "/own";
    const auto worker = stopped_when_ready(cohort::function<replace_descriptors>(path),
                                           cohort::options(1).stack_on_stop(true));
    CHECK(worker.cause == cause::stopped);
    CHECK(std::filesystem::file_size(path) == 0);
}

TEST_CASE("last words: the highest signal may be the stop signal of workers that are asked") {
    const leak_guard guard;
    const auto worker =
        stopped_when_ready(cohort::function<wait_here>(),
                           cohort::options(1).stack_on_stop(true).stop_signal(SIGRTMAX));
    CHECK(worker.cause == cause::stopped);
    CHECK(worker.status.signal() == SIGRTMAX);
    CHECK_FALSE(worker.at_stop.empty());
}

TEST_CASE("last words: a command in its parent's process group is described by its state") {
    const leak_guard guard;
    const auto worker = stopped_when_ready(
        cohort::command("sh", "-c",
                        "echo >&" + std::to_string(ready::number) + "; exec sleep 1000"),
        cohort::options(1).stack_on_stop(true).process_group(cohort::process_group::inherit));
    CHECK(worker.cause == cause::stopped);
    REQUIRE(worker.at_stop.size() == 1);
    CHECK(worker.at_stop[0].id == worker.pid);
}

TEST_CASE("last words: a stop signal of the kind that crashes send asks the worker to stop") {
    const leak_guard guard;
    const auto worker = stopped_when_ready(cohort::function<end_when_asked>(),
                                           cohort::options(1).stop_signal(SIGABRT));
    CHECK(worker.cause == cause::returned);
}

}  // namespace last_words_test
