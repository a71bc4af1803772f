// SPDX-License-Identifier: BSL-1.0
// std::terminate in a worker is reported with what led to it, and is an exception of the worker.
#include "trace_support.hpp"
#include "worker_support.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <thread>

#include <unistd.h>

namespace terminate_test {

using namespace cohort::test;
using cohort::cause;

namespace {

void fail_without_leave() noexcept { load(7); }

void fail_in_noexcept(int) {
    leave_no_core();
    fail_without_leave();
}

struct failing_destructor {
    ~failing_destructor() noexcept(false) { throw std::runtime_error("the second"); }
};

void fail_while_unwound(int) {
    leave_no_core();
    const failing_destructor last;
    load(7);
}

void fail_in_thread(int) {
    leave_no_core();
    std::thread([] { load(7); }).join();
}

void fail_in_many_threads(int) {
    leave_no_core();
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([] { load(7); });
    for (auto& thread : threads)
        thread.join();
}

void forget_thread(int) {
    leave_no_core();
    const std::thread forgotten(sleep_until_killed);
}

void give_up_in_handler(int) {
    leave_no_core();
    try {
        load(7);
    } catch (...) {
        std::terminate();
    }
}

void end_by_handler(int, bool asks_former) {
    leave_no_core();
    static std::terminate_handler former;
    former = std::get_terminate();
    if (asks_former)
        std::set_terminate([] { former(); });
    else
        std::set_terminate([] { ::_exit(9); });
    fail_without_leave();
}

struct last_wish {
    ~last_wish() { std::terminate(); }
};

void terminate_after_returning(int) {
    leave_no_core();
    static const last_wish at_exit;
}

void terminate_in_one(int index) {
    if (index == 0) {
        wait_for_go();
        fail_in_noexcept(index);
    }
    wait_for_stop();
    throw std::runtime_error("interrupted");
}

constexpr auto note =
    "std::terminate was called, on account of this exception or while it was handled";

/// The worker failed by that throw, and by way of std::terminate.
void check_terminated(const cohort::outcome& worker) {
    CHECK(worker.cause == cause::raised);
    CHECK(worker.status.signal() == SIGABRT);
    CHECK(worker.note() == note);
    CHECK_FALSE(worker.crash.has_value());
    REQUIRE(worker.error.has_value());
    CHECK(worker.error->type == "std::out_of_range");
    CHECK(worker.error->message == "value 7 is too large");
    INFO(all_of(worker.error->frames));
    REQUIRE_FALSE(worker.error->frames.empty());
    if (names_are_read)
        CHECK(worker.error->frames.back().line == line_of_throw);
}

}  // namespace

TEST_CASE("terminate: an exception that leaves a noexcept function is reported with its stack") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<fail_in_noexcept>());
    check_terminated(worker);
    if (!names_are_read)
        return;
    CHECK(place_of(worker.error->frames, "fail_in_noexcept") == 0);
    CHECK(place_of(worker.error->frames, "fail_without_leave") == 1);
}

TEST_CASE("terminate: the exception is thrown, and its text ends with how it ended the worker") {
    const leak_guard guard;
    const auto error =
        thrown_by<cohort::process_raised_exception>(cohort::function<fail_in_noexcept>());
    const std::string text = error.what();
    CHECK(text.starts_with("\n\n-- Process 0 terminated with the following error:\nTraceback"));
    CHECK(text.ends_with("\nstd::out_of_range: value 7 is too large\n" + std::string(note)));
}

TEST_CASE("terminate: a second exception during unwinding is the one that is reported") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<fail_while_unwound>());
    CHECK(worker.cause == cause::raised);
    REQUIRE(worker.error.has_value());
    CHECK(worker.error->type == "std::runtime_error");
    CHECK(worker.error->message == "the second");
    if (names_are_read)
        CHECK(contains(worker.error->frames.back().function, "~failing_destructor"));
}

TEST_CASE("terminate: an exception that leaves a thread of the worker is reported") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<fail_in_thread>());
    check_terminated(worker);
    if (names_are_read)
        CHECK(place_of(worker.error->frames, "fail_in_thread(int)::") >= 0);
}

TEST_CASE("terminate: of threads that fail at once one is reported") {
    const leak_guard guard;
    const auto report = ended(cohort::function<fail_in_many_threads>(),
                              cohort::options(8).on_failure(cohort::on_failure::keep_going));
    for (const auto& worker : report.outcomes)
        check_terminated(worker);
}

TEST_CASE(
    "terminate: a thread that was never joined is reported with the place of its destruction") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<forget_thread>());
    CHECK(worker.cause == cause::raised);
    CHECK(worker.status.signal() == SIGABRT);
    REQUIRE(worker.error.has_value());
    CHECK(worker.error->type == "std::terminate");
    CHECK(contains(worker.error->message, "a joinable std::thread was destroyed"));
    CHECK(worker.note().empty());
    if (!names_are_read)
        return;
    INFO(all_of(worker.error->frames));
    CHECK(place_of(worker.error->frames, "forget_thread") == 0);
    CHECK(place_of(worker.error->frames, "std::thread::~thread()") == 1);
}

TEST_CASE(
    "terminate: std::terminate in a catch block is reported with the exception that is handled") {
    const leak_guard guard;
    check_terminated(end_of(cohort::function<give_up_in_handler>()));
}

TEST_CASE("terminate: a handler that the worker's own code sets is the one that runs") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<end_by_handler>(false));
    CHECK(worker.cause == cause::exited);
    CHECK(worker.status.exit_code() == 9);
    CHECK_FALSE(worker.error.has_value());
}

TEST_CASE("terminate: a handler that the worker's own code sets may go on to the library's") {
    const leak_guard guard;
    check_terminated(end_of(cohort::function<end_by_handler>(true)));
}

TEST_CASE("terminate: std::terminate after the return is reported as that") {
    const leak_guard guard;
    const auto worker = end_of(cohort::function<terminate_after_returning>());
    CHECK(worker.cause == cause::signaled);
    CHECK(worker.status.signal() == SIGABRT);
    CHECK(worker.note() == "after returning");
    CHECK_FALSE(worker.error.has_value());
}

GROUP_TEST("terminate: it is a failure like any other, and the other workers are its victims") {
    ready waits(executor);
    auto group = co_await cohort::spawn(cohort::function<terminate_in_one>(),
                                        cohort::options(3).fd(waits.child_end(), ready::number));
    co_await waits.wait(3);
    group.signal(0, SIGUSR1);
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(error.error_index() == 0);
    check_terminated(error.outcomes()[0]);
    for (const int i : {1, 2}) {
        CHECK(error.outcomes()[i].cause == cause::stopped);
        CHECK(error.outcomes()[i].error->message == "interrupted");
    }
}

}  // namespace terminate_test
