// SPDX-License-Identifier: BSL-1.0
// Where a signal ended a worker's function.
#include "trace_support.hpp"
#include "worker_support.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

namespace crash_test {

using namespace cohort::test;
using cohort::cause;

constexpr int line_of_fault = __LINE__ + 2;
[[gnu::noinline]] void write_to(std::uintptr_t address) {
    *reinterpret_cast<volatile int*>(address) = 1;
}

[[gnu::noinline]] void write_beyond_file() {
    const int empty = ::memfd_create("empty", MFD_CLOEXEC);
    void* const page = ::mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, empty, 0);
    *static_cast<volatile int*>(page) = 1;
}

[[gnu::noinline]] int divide(int by) { return 100 / by; }

void fail(int, int signo) {
    leave_no_core();
    switch (signo) {
    case SIGSEGV:
        return write_to(0x10);
    case SIGBUS:
        return write_beyond_file();
    case SIGILL:
        __builtin_trap();
    case SIGFPE:
        std::exit(divide(0));
    default:
        std::abort();
    }
}

[[gnu::noinline]] int recurse(int depth) {
    if (depth < 0)
        return 0;  // never: it overflows first
    volatile char frame[512];
    frame[0] = static_cast<char>(depth);
    return recurse(depth + 1) + frame[0];
}

namespace {

void overflow_stack(int) {
    leave_no_core();
    crash_test::recurse(0);
}

void call_nothing(int) {
    leave_no_core();
    void (*volatile nothing)() = nullptr;
    nothing();
}

void abort_here(int) {
    leave_no_core();
    std::abort();
}

void abort_in_thread(int) {
    leave_no_core();
    std::thread([] { std::abort(); }).join();
}

void abort_in_many_threads(int) {
    leave_no_core();
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([] { std::abort(); });
    for (auto& thread : threads)
        thread.join();
}

[[noreturn]] void leave_by_nine(int) { ::_exit(9); }

void handle_abort(int) {
    std::signal(SIGABRT, &leave_by_nine);
    std::abort();
}

void ignore_floating_point(int) {
    std::signal(SIGFPE, SIG_IGN);
    ::raise(SIGFPE);
}

class crashing_error : public std::exception {
public:
    const char* what() const noexcept override { std::abort(); }
};

void crash_while_told(int) {
    leave_no_core();
    throw crashing_error();
}

struct last_wish {
    ~last_wish() { std::abort(); }
};

int crash_after_returning(int) {
    leave_no_core();
    static const last_wish at_exit;
    return 1;
}

void (*told_by_library)(int, siginfo_t*, void*) = nullptr;

/// The library's handler first; then the process lives on, until it is stopped.
void tell_and_linger(int signo, siginfo_t* info, void* context) {
    told_by_library(signo, info, context);
    std::signal(SIGTERM, SIG_DFL);
    say_ready();
    sleep_until_killed();
}

void crash_first_end_last(int index) {
    if (index == 1) {
        struct sigaction action {};
        ::sigaction(SIGSEGV, nullptr, &action);
        told_by_library = action.sa_sigaction;
        action.sa_sigaction = &tell_and_linger;
        ::sigaction(SIGSEGV, &action, nullptr);
        crash_test::write_to(0x10);
    }
    wait_for_go();
    throw std::runtime_error("the second");
}

cohort::outcome crashed_by(int signo) {
    auto worker = end_of(cohort::function<crash_test::fail>(signo));
    CHECK(worker.cause == cause::signaled);
    CHECK(worker.status.signal() == signo);
    CHECK_FALSE(worker.error.has_value());
    REQUIRE(worker.crash.has_value());
    CHECK(worker.crash->signal == signo);
    return worker;
}

void check_ends_in(const cohort::crash_record& crash, std::string_view function) {
    if (!names_are_read)
        return;
    INFO(all_of(crash.frames));
    CHECK(contains(crash.frames.back().function, function));
    CHECK(crash.frames.front().function == "crash_test::fail(int, int)");
}

}  // namespace

TEST_CASE("crash: an access to an unmapped address is reported with the call, the address and the "
          "reason") {
    if (crashes_are_sanitized)
        return skip(sanitizer_tells);
    const leak_guard guard;
    const auto crash = crashed_by(SIGSEGV).crash.value();
    CHECK(crash.code == SEGV_MAPERR);
    CHECK(crash.address == 0x10);
    CHECK(crash.trace.starts_with("Traceback (most recent call last):\n"));
    CHECK(crash.trace.ends_with("\nSIGSEGV at address 0x10 (address not mapped)"));
    check_ends_in(crash, "crash_test::write_to");
    if (names_are_read)
        CHECK(crash.frames.back().line == crash_test::line_of_fault);
}

TEST_CASE("crash: the text of the exception is torch's line, then where it crashed") {
    if (crashes_are_sanitized)
        return skip(sanitizer_tells);
    const leak_guard guard;
    const auto error =
        thrown_by<cohort::process_exited_exception>(cohort::function<crash_test::fail>(SIGSEGV));
    const auto& crash = error.outcomes().at(0).crash.value();
    CHECK(std::string(error.what()) == "process 0 terminated with signal SIGSEGV\n" + crash.trace);
    CHECK(error.signal_name() == "SIGSEGV");
}

TEST_CASE("crash: an access beyond the end of a mapped file is reported") {
    if (crashes_are_sanitized)
        return skip(sanitizer_tells);
    const leak_guard guard;
    const auto crash = crashed_by(SIGBUS).crash.value();
    CHECK(crash.trace.ends_with(" (no such physical address)"));
    check_ends_in(crash, "write_beyond_file");
}

TEST_CASE("crash: an illegal instruction is reported") {
    if (crashes_are_sanitized)
        return skip(sanitizer_tells);
    const leak_guard guard;
    check_ends_in(crashed_by(SIGILL).crash.value(), "crash_test::fail");
}

#if defined(__x86_64__) || defined(__i386__)  // elsewhere the quotient is 0
TEST_CASE("crash: a division by zero is reported") {
    if (crashes_are_sanitized)
        return skip(sanitizer_tells);
    const leak_guard guard;
    const auto crash = crashed_by(SIGFPE).crash.value();
    CHECK(crash.trace.ends_with(" (integer division by zero)"));
    check_ends_in(crash, "crash_test::divide");
}
#endif

TEST_CASE("crash: an abort is reported without an address") {
    const leak_guard guard;
    const auto crash = crashed_by(SIGABRT).crash.value();
    CHECK(crash.address == 0);
    CHECK(crash.trace.ends_with("\nSIGABRT (sent by the process itself)"));
    if (names_are_read)
        CHECK(place_of(crash.frames, "crash_test::fail") == 0);
}

TEST_CASE("crash: a stack overflow is reported") {
    if (crashes_are_sanitized)
        return skip(sanitizer_tells);
    const leak_guard guard;
    const auto worker = end_of(cohort::function<overflow_stack>());
    CHECK(worker.status.signal() == SIGSEGV);
    REQUIRE(worker.crash.has_value());
    CHECK(worker.crash->frames.size() >= 128);
    if (names_are_read)
        CHECK(contains(worker.crash->trace, "  [Previous line repeated "));
}

TEST_CASE("crash: a jump to an unmapped address is reported with the function that jumped") {
    if (crashes_are_sanitized)
        return skip(sanitizer_tells);
    const leak_guard guard;
    const auto worker = end_of(cohort::function<call_nothing>());
    CHECK(worker.status.signal() == SIGSEGV);
    REQUIRE(worker.crash.has_value());
    INFO(worker.crash->trace);
    CHECK(worker.crash->address == 0);
    if (names_are_read)
        CHECK(place_of(worker.crash->frames, "call_nothing") >= 0);
}

TEST_CASE("crash: a crash on another thread of the worker is reported") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<abort_in_thread>());
    CHECK(worker.status.signal() == SIGABRT);
    REQUIRE(worker.crash.has_value());
    if (names_are_read)
        CHECK(place_of(worker.crash->frames, "abort_in_thread(int)::") >= 0);
}

TEST_CASE("crash: of threads that crash at once one is reported") {
    const leak_guard guard;
    const auto report = ended(cohort::function<abort_in_many_threads>(),
                              cohort::options(8).on_failure(cohort::on_failure::keep_going));
    for (const auto& worker : report.outcomes) {
        CHECK(worker.status.signal() == SIGABRT);
        REQUIRE(worker.crash.has_value());
        CHECK(worker.crash->signal == SIGABRT);
        CHECK_FALSE(worker.crash->frames.empty());
    }
}

TEST_CASE("crash: without a crash record the message is torch's line alone") {
    const leak_guard guard;
    const auto error = thrown_by<cohort::process_exited_exception>(
        cohort::function<abort_here>(), cohort::options(1).crash_record(false));
    CHECK(std::string(error.what()) == "process 0 terminated with signal SIGABRT");
    CHECK_FALSE(error.outcomes().at(0).crash.has_value());
}

TEST_CASE("crash: a command has no crash handler, and its message is torch's line alone") {
    const leak_guard guard;
    const auto status = printed_by(cohort::command("cat", "/proc/self/status"));
    CHECK(field(status, "SigCgt") == "0000000000000000");
    const auto error = thrown_by<cohort::process_exited_exception>(
        cohort::command("sh", "-c", "ulimit -c 0; kill -SEGV $$"));
    CHECK(std::string(error.what()) == "process 0 terminated with signal SIGSEGV");
    CHECK_FALSE(error.outcomes().at(0).crash.has_value());
}

TEST_CASE("crash: a handler that the worker's own code installs is the one that runs") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<handle_abort>());
    CHECK(worker.cause == cause::exited);
    CHECK(worker.status.exit_code() == 9);
    CHECK_FALSE(worker.crash.has_value());
}

TEST_CASE("crash: a signal that the worker's own code ignores is no crash") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<ignore_floating_point>());
    CHECK(worker.success());
    CHECK_FALSE(worker.crash.has_value());
}

TEST_CASE("crash: a crash while an exception is being recorded is reported by its signal alone") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<crash_while_told>());
    CHECK(worker.cause == cause::signaled);
    CHECK(worker.status.signal() == SIGABRT);
    CHECK_FALSE(worker.error.has_value());
    CHECK_FALSE(worker.crash.has_value());
}

TEST_CASE("crash: a crash after the function has returned is reported as that") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<crash_after_returning>());
    CHECK(worker.cause == cause::signaled);
    CHECK(worker.status.signal() == SIGABRT);
    CHECK(worker.note() == "after returning");
    CHECK_FALSE(worker.success());
}

TEST_CASE("crash: the first crash wins even if its process exits last, by the stop signal") {
    if (crashes_are_sanitized)
        return skip(sanitizer_tells);
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        ready waits(co_await asio::this_coro::executor);
        auto group =
            co_await cohort::spawn(cohort::function<crash_first_end_last>(),
                                   cohort::options(2).fd(waits.child_end(), ready::number));
        co_await waits.wait(2);
        group.signal(0, SIGUSR1);
        const auto error = co_await failure<cohort::process_exited_exception>(group);
        CHECK(error.error_index() == 1);
        const auto& first = error.outcomes()[1];
        CHECK(first.cause == cause::signaled);
        CHECK(first.status.signal() == SIGTERM);
        CHECK(first.crash.value().signal == SIGSEGV);
        CHECK(error.outcomes()[0].error->message == "the second");
        CHECK_FALSE(error.outcomes()[0].first_failure);
    }());
}

}  // namespace crash_test
