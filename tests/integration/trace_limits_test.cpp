// SPDX-License-Identifier: BSL-1.0
// What the noting of throws must bear: exceptions without a throw, or by the thousand, deep stacks,
// copies of the worker, and ends in the middle of it.
#include "trace_support.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>

#include <sys/wait.h>
#include <unistd.h>

namespace trace_limits_test {

using namespace cohort::test;

namespace {

void* address_of(const std::exception_ptr& exception) {
    void* address = nullptr;
    std::memcpy(&address, &exception, sizeof address);
    return address;
}

/// Its memory was another one's a moment before, which was thrown.
void rethrow_made_one(int) {
    for (int i = 0; i < 100; ++i) {
        void* before = nullptr;
        try {
            throw std::runtime_error("thrown");
        } catch (...) {
            before = address_of(std::current_exception());
        }
        const auto made = std::make_exception_ptr(std::runtime_error("made"));
        if (address_of(made) == before || (under_asan && i == 99))  // which lets memory rest
            std::rethrow_exception(made);
    }
    throw std::logic_error("the memory was not used again");
}

std::vector<std::exception_ptr> many_exceptions(int count) {
    std::vector<std::exception_ptr> kept;
    for (int i = 0; i < count; ++i)
        try {
            throw std::runtime_error("kept " + std::to_string(i));
        } catch (...) {
            kept.push_back(std::current_exception());
        }
    return kept;
}

void fail_among_many(int) {
    const auto kept = many_exceptions(1000);
    load(7);
}

void fail_after_many(int) {
    many_exceptions(1000);
    load(7);
}

[[gnu::noinline]] int recurse(int depth) {
    if (depth == 0)
        return load(7);
    return recurse(depth - 1) + 1;
}

void fail_deep_down(int) { recurse(1000); }

/// Ends with 0, and writes nothing itself, if a copy of the worker has ended with that status.
template <void (*End)()>
void outlive_copy(int, int expected) {
    const pid_t copy = ::fork();
    if (copy == 0) {
        leave_no_core();
        End();
    }
    int status = 0;
    ::waitpid(copy, &status, 0);
    ::_exit(status == expected ? 0 : 3);
}

void throw_in_copy() { load(7); }
void abort_in_copy() { std::abort(); }
void terminate_in_copy() noexcept { load(7); }

class sly_error : public std::exception {
public:
    const char* what() const noexcept override { std::_Exit(7); }
};

void exit_while_told(int) { throw sly_error(); }

void exit_while_handled(int, int code) {
    try {
        load(7);
    } catch (...) {
        std::exit(code);
    }
}

struct leaver {
    ~leaver() { std::_Exit(9); }
};

void exit_while_unwound(int) {
    const leaver last;
    load(7);
}

}  // namespace

TEST_CASE(
    "trace limits: an exception that was made without a throw has no stack of an earlier one") {
    const leak_guard guard;
    const auto error = error_of(cohort::function<rethrow_made_one>());
    CHECK(error.message == "made");
    CHECK(error.frames.empty());
    CHECK(error.trace == "std::runtime_error: made");
}

TEST_CASE("trace limits: more live exceptions than stacks are kept do no harm") {
    const leak_guard guard;
    const auto error = error_of(cohort::function<fail_among_many>());
    CHECK(error.type == "std::out_of_range");
    CHECK(error.message == "value 7 is too large");
}

TEST_CASE("trace limits: the stack of an exception is forgotten with it") {
    const leak_guard guard;
    const auto frames = error_of(cohort::function<fail_after_many>()).frames;
    CHECK(frames.size() == 2);
    if (names_are_read)
        CHECK(frames.back().line == line_of_throw);
}

TEST_CASE("trace limits: of a deep stack the newest calls are kept") {
    const leak_guard guard;
    const auto error = error_of(cohort::function<fail_deep_down>());
    CHECK(error.frames.size() == 128);
    if (!names_are_read)
        return;
    CHECK(error.frames.back().line == line_of_throw);
    CHECK(contains(error.frames.front().function, "recurse"));
    CHECK(contains(error.trace, "  [Previous line repeated "));
    CHECK(lines_of(error.trace).size() < 12);
}

TEST_CASE("trace limits: a forked child of a worker writes nothing to the worker's record") {
    const leak_guard guard;
    const auto by_exit = W_EXITCODE(1, 0), by_abort = W_EXITCODE(0, SIGABRT);
    for (const auto& worker :
         {end_of(cohort::function<outlive_copy<throw_in_copy>>(by_exit)),
          end_of(cohort::function<outlive_copy<abort_in_copy>>(by_abort)),
          end_of(cohort::function<outlive_copy<terminate_in_copy>>(by_abort))}) {
        CHECK(worker.cause == cohort::cause::exited);
        CHECK(worker.status.exit_code() == 0);
        CHECK_FALSE(worker.error.has_value());
        CHECK_FALSE(worker.crash.has_value());
    }
}

TEST_CASE("trace limits: a worker that exits while its exception is being recorded has exited") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<exit_while_told>());
    CHECK(worker.cause == cohort::cause::exited);
    CHECK(worker.status.exit_code() == 7);
    CHECK_FALSE(worker.error.has_value());
}

TEST_CASE("trace limits: a worker that exits while it handles an exception has exited") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<exit_while_handled>(8));
    CHECK(worker.cause == cohort::cause::exited);
    CHECK(worker.status.exit_code() == 8);
    CHECK_FALSE(worker.error.has_value());
    CHECK(end_of(cohort::function<exit_while_handled>(0)).success());
}

TEST_CASE("trace limits: a worker that exits while its stack is unwound has exited") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<exit_while_unwound>());
    CHECK(worker.cause == cohort::cause::exited);
    CHECK(worker.status.exit_code() == 9);
    CHECK_FALSE(worker.error.has_value());
}

}  // namespace trace_limits_test
