// SPDX-License-Identifier: BSL-1.0
// An exception that leaves a worker because a group of its own has failed reaches the top with its
// whole history: who failed in whom, and where.
#include "methods.hpp"
#include "trace_support.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <exception>
#include <stdexcept>

#include <unistd.h>

namespace history_test {

using namespace cohort::test;

namespace {

void fail_in_last(int index, int last) {
    if (index == last)
        load(7);
    ::sleep(1000);
}

void abort_at_once(int) {
    leave_no_core();
    std::abort();
}

/// A group of its own, of two: the second fails.
void have_group(int) { run_coroutine(run_whole(cohort::function<fail_in_last>(1), 2)); }

/// A group in a worker of a group, as many levels deep: the worker of the last one fails.
void have_groups(int, int levels) {
    if (levels == 0)
        load(7);
    run_coroutine(run_whole(cohort::function<have_groups>(levels - 1), 1));
}

void have_crashing_group(int) { run_coroutine(run_whole(cohort::function<abort_at_once>(), 1)); }

void have_failing_command(int) {
    const auto script = "printf '{\"message\": {\"message\": \"ValueError: no data\"}}' "
                        ">$TORCHELASTIC_ERROR_FILE; exit 1";
    run_coroutine(run_whole(cohort::command("sh", "-c", script), 1));
}

void wrap_group(int) {
    try {
        have_group(0);
    } catch (...) {
        std::throw_with_nested(std::runtime_error("the group is lost"));
    }
}

void handle_group(int) {
    try {
        have_group(0);
    } catch (const cohort::process_raised_exception&) {
    }
    throw std::runtime_error("something else");
}

[[noreturn]] void throw_nested(int depth) {
    if (depth == 0)
        throw std::out_of_range("the first cause");
    try {
        throw_nested(depth - 1);
    } catch (...) {
        std::throw_with_nested(std::runtime_error("depth " + std::to_string(depth)));
    }
}

void nest_deeply(int) { throw_nested(100); }

void nest_long_texts(int) {
    const std::string text(1 << 20, 'x');
    try {
        throw std::out_of_range(text);
    } catch (...) {
        std::throw_with_nested(std::runtime_error(text + " the end"));
    }
}

bool can_have_groups() {
    return groups_in_copies || cohort::test::default_method() != cohort::start_method::fork;
}

}  // namespace

TEST_CASE("history: the failure of a worker's own group names the worker of each level") {
    if (!can_have_groups())
        return skip(no_threads_in_copies);
    const leak_guard guard;
    const auto worker = end_of(cohort::function<have_group>());
    const auto& error = worker.error.value();
    CHECK(error.type == "cohort::process_raised_exception");
    REQUIRE(error.nested.size() == 1);
    const auto& inner = error.nested[0];
    CHECK(inner.worker == 1);
    CHECK(inner.pid > 0);
    CHECK(inner.pid != worker.pid);
    CHECK(inner.type == "std::out_of_range");
    CHECK(inner.message == "value 7 is too large");
    REQUIRE_FALSE(inner.frames.empty());
    if (names_are_read) {
        CHECK(inner.frames.back().line == line_of_throw);
        CHECK(place_of(inner.frames, "fail_in_last") == 0);
    }
}

TEST_CASE("history: the text of a group's failure has its worker's message once") {
    if (!can_have_groups())
        return skip(no_threads_in_copies);
    const leak_guard guard;
    const auto error = error_of(cohort::function<have_group>());
    CHECK(contains(error.trace, "-- Process 1 terminated with the following error:\nTraceback"));
    const auto said = error.trace.find("std::out_of_range: value 7 is too large");
    CHECK(said != std::string::npos);
    CHECK(error.trace.find("std::out_of_range", said + 1) == std::string::npos);
}

TEST_CASE("history: each level is named, the nearest first") {
    if (!can_have_groups())
        return skip(no_threads_in_copies);
    const leak_guard guard;
    const auto error = error_of(cohort::function<have_groups>(3));
    INFO(error.trace);
    CHECK(error.worker == -1);
    REQUIRE(error.nested.size() == 3);
    for (const auto& level : error.nested)
        CHECK(level.worker == 0);
    CHECK(error.nested[0].type == "cohort::process_raised_exception");
    CHECK(error.nested[1].type == "cohort::process_raised_exception");
    CHECK(error.nested[2].type == "std::out_of_range");
    CHECK(error.nested[0].pid != error.nested[1].pid);
    if (names_are_read)
        CHECK(error.nested[2].frames.back().line == line_of_throw);
}

TEST_CASE("history: the message of a crashed inner group has the place of the crash") {
    if (!can_have_groups())
        return skip(no_threads_in_copies);
    const leak_guard guard;
    const auto error = error_of(cohort::function<have_crashing_group>());
    CHECK(error.type == "cohort::process_exited_exception");
    CHECK(error.message.starts_with("process 0 terminated with signal SIGABRT\nTraceback"));
    CHECK(error.trace.ends_with("\nSIGABRT (sent by the process itself)"));
    if (names_are_read)
        CHECK(contains(error.message, "abort_at_once"));
}

TEST_CASE("history: the message of a command's failure has the text of its error file") {
    if (!can_have_groups())
        return skip(no_threads_in_copies);
    const leak_guard guard;
    const auto error = error_of(cohort::function<have_failing_command>());
    REQUIRE(error.nested.size() == 1);
    CHECK(error.nested[0].worker == 0);
    CHECK(error.nested[0].type == "ValueError");
    CHECK(error.nested[0].message == "no data");
    CHECK(contains(error.trace, "ValueError: no data"));
}

TEST_CASE("history: a group's failure nested in another exception is part of the message") {
    if (!can_have_groups())
        return skip(no_threads_in_copies);
    const leak_guard guard;
    const auto error = error_of(cohort::function<wrap_group>());
    CHECK(error.type == "std::runtime_error");
    REQUIRE(error.nested.size() == 2);
    CHECK(error.nested[0].type == "cohort::process_raised_exception");
    CHECK(error.nested[0].worker == -1);
    CHECK(error.nested[1].type == "std::out_of_range");
    CHECK(error.nested[1].worker == 1);
    CHECK(error.trace.ends_with("\nstd::runtime_error: the group is lost"));
}

TEST_CASE("history: a failure that the worker has handled is not part of the message") {
    if (!can_have_groups())
        return skip(no_threads_in_copies);
    const leak_guard guard;
    const auto error = error_of(cohort::function<handle_group>());
    CHECK(error.message == "something else");
    CHECK(error.nested.empty());
}

TEST_CASE("history: of a long chain of causes the newest are kept") {
    const leak_guard guard;
    const auto error = error_of(cohort::function<nest_deeply>());
    CHECK(error.message == "depth 100");
    REQUIRE_FALSE(error.nested.empty());
    CHECK(error.nested.size() <= 16);
    CHECK(error.nested[0].message == "depth 99");
}

TEST_CASE("history: long texts are shortened, and the message stays at the end") {
    const leak_guard guard;
    const auto error = error_of(cohort::function<nest_long_texts>());
    CHECK(error.type == "std::runtime_error");
    REQUIRE(error.nested.size() == 1);
    CHECK(error.nested[0].type == "std::out_of_range");
    CHECK(error.trace.size() <= (1 << 20));
    CHECK(error.trace.ends_with("xxx the end"));
}

}  // namespace history_test
