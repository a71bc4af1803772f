// SPDX-License-Identifier: BSL-1.0
// Where an exception of a worker was thrown: the stack of the throw, as values and as a text.
#include "handed_coroutine.hpp"
#include "trace_support.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <coroutine>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace trace_test {

using namespace cohort::test;

/// As C has it: the name of a type, to who takes it for a mangled one.
extern "C" [[gnu::noinline]] void d(int value) { load(value); }

class odd_error {};

constexpr int line_of_call = __LINE__ + 1;
[[gnu::noinline]] int train(int value) { return cohort::test::load(value) + 1; }

void fail(int, int value) { train(value); }

namespace {

void throw_one_of_all(int index) {
    switch (index) {
    case 0:
        throw 42;
    case 1:
        throw "a literal";
    case 2:
        throw std::string("a string");
    case 3:
        throw odd_error();
    default:
        throw std::system_error(ENOENT, std::generic_category(), "train.conf");
    }
}

void fail_in_library(int) { (void)std::string("short").at(7); }

void call_c_function(int) { d(7); }

void fail_without_throw(int) {
    std::rethrow_exception(
        std::make_exception_ptr(std::system_error(ENOENT, std::generic_category(), "train.conf")));
}

void catch_and_rethrow(int) {
    try {
        load(7);
    } catch (const std::exception&) {
        throw;
    }
}

void carry_between_threads(int) {
    std::exception_ptr carried;
    std::thread([&carried] {
        try {
            load(7);
        } catch (...) {
            carried = std::current_exception();
        }
    }).join();
    std::rethrow_exception(carried);
}

[[noreturn]] void give_reason() { std::throw_with_nested(std::runtime_error("train failed")); }

void wrap_cause(int) {
    try {
        load(7);
    } catch (...) {
        give_reason();
    }
}

eager fail_in_steps(std::coroutine_handle<>& resumed) {
    co_await handed{resumed};
    load(7);
}

void resume_failing(int) {
    std::coroutine_handle<> waiting;
    fail_in_steps(waiting);
    waiting.resume();
}

}  // namespace

TEST_CASE("trace: the frames name function, file and line of each call, newest last") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    const auto frames = error_of(cohort::function<trace_test::fail>(7)).frames;
    INFO(all_of(frames));
    REQUIRE(frames.size() == 3);
    CHECK(frames[0].function == "trace_test::fail(int, int)");
    CHECK(frames[1].function == "trace_test::train(int)");
    CHECK(frames[1].line == line_of_call);
    CHECK(frames[2].function == "cohort::test::load(int)");
    CHECK(frames[2].line == line_of_throw);
    for (const auto& frame : frames) {
        CHECK(frame.file.ends_with(&frame == &frames[2] ? "trace_support.hpp" : "trace_test.cpp"));
        CHECK(frame.module.ends_with("integration_tests"));
        CHECK(frame.offset != 0);
        CHECK_FALSE(frame.inlined);
    }
}

TEST_CASE("trace: the text is a traceback that ends with type and message") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    const auto error =
        thrown_by<cohort::process_raised_exception>(cohort::function<trace_test::fail>(7));
    const std::string text = error.what();
    const std::string header = "\n\n-- Process 0 terminated with the following error:\n";
    CHECK(text == header + error.error().trace);
    const auto lines = lines_of(error.error().trace);
    REQUIRE(lines.size() == 5);
    CHECK(lines[0] == "Traceback (most recent call last):");
    CHECK(lines[1].ends_with("in trace_test::fail(int, int)"));
    CHECK(lines[3].starts_with("  File \""));
    CHECK(lines[3].ends_with("trace_support.hpp\", line " + std::to_string(line_of_throw) +
                             ", in cohort::test::load(int)"));
    CHECK(lines[4] == "std::out_of_range: value 7 is too large");
}

TEST_CASE("trace: frames without names have their module and the place in it") {
    const leak_guard guard;
    const auto error = error_of(cohort::function<trace_test::fail>(7));
    REQUIRE(error.frames.size() >= 3);
    CHECK(error.frames.back().module.ends_with("integration_tests"));
    CHECK(error.frames.back().offset != 0);
    CHECK(error.trace.starts_with("Traceback (most recent call last):\n  "));
    CHECK(error.trace.ends_with("\nstd::out_of_range: value 7 is too large"));
}

TEST_CASE("trace: whatever is thrown comes with the stack of its throw") {
    const leak_guard guard;
    const auto report = ended(cohort::function<throw_one_of_all>(),
                              cohort::options(5).on_failure(cohort::on_failure::keep_going));
    for (const auto& worker : report.outcomes) {
        INFO(worker.index);
        REQUIRE(worker.error.has_value());
        REQUIRE(worker.error->frames.size() == 1);
        if (names_are_read)
            CHECK(contains(worker.error->frames[0].function, "throw_one_of_all"));
    }
}

TEST_CASE("trace: the code and the category of a std::system_error are reported") {
    const leak_guard guard;
    const auto report = ended(cohort::function<throw_one_of_all>(),
                              cohort::options(5).on_failure(cohort::on_failure::keep_going));
    const auto& error = report.outcomes[4].error.value();
    CHECK(error.code == ENOENT);
    CHECK(error.category == "generic");
    CHECK(error.trace.ends_with(
        "\nstd::system_error [generic:2]: train.conf: No such file or directory"));
    CHECK(report.outcomes[0].error->category.empty());
}

TEST_CASE("trace: a function of C has its name") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    const auto frames = error_of(cohort::function<call_c_function>()).frames;
    INFO(all_of(frames));
    REQUIRE(frames.size() == 3);
    CHECK(frames[1].function == "d");
}

TEST_CASE("trace: without a stack the last line is the same") {
    const leak_guard guard;
    const auto error = error_of(cohort::function<fail_without_throw>());
    CHECK(error.trace == "std::system_error [generic:2]: train.conf: No such file or directory");
}

TEST_CASE("trace: the newest calls of an exception thrown by a library are the library's") {
    const leak_guard guard;
    const auto frames = error_of(cohort::function<fail_in_library>()).frames;
    INFO(all_of(frames));
    REQUIRE_FALSE(frames.empty());
    CHECK(contains(frames.back().module, "libstdc++"));
    if (names_are_read)
        CHECK(contains(frames.front().function, "fail_in_library"));
}

TEST_CASE("trace: an exception that is caught and rethrown keeps the stack of its throw") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    const auto frames = error_of(cohort::function<catch_and_rethrow>()).frames;
    INFO(all_of(frames));
    REQUIRE(frames.size() == 2);
    CHECK(contains(frames[0].function, "catch_and_rethrow"));
    CHECK(frames[1].line == line_of_throw);
}

TEST_CASE("trace: an exception that another thread rethrows keeps the stack of its throw") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    const auto frames = error_of(cohort::function<carry_between_threads>()).frames;
    INFO(all_of(frames));
    REQUIRE_FALSE(frames.empty());
    CHECK(frames.back().line == line_of_throw);
    CHECK(place_of(frames, "carry_between_threads(int)::") >= 0);
}

TEST_CASE("trace: a nested exception has the stack of its own throw, and stands first") {
    const leak_guard guard;
    const auto error = error_of(cohort::function<wrap_cause>());
    CHECK(error.type == "std::runtime_error");
    REQUIRE(error.nested.size() == 1);
    const auto& cause = error.nested[0];
    CHECK(cause.type == "std::out_of_range");
    CHECK(cause.message == "value 7 is too large");
    CHECK(cause.worker == -1);
    const auto first = error.trace.find("std::out_of_range: value 7 is too large\n\nThe above "
                                        "exception was the direct cause of the following");
    CHECK(first != std::string::npos);
    CHECK(error.trace.ends_with("\nstd::runtime_error: train failed"));
    if (!names_are_read)
        return;
    CHECK(cause.frames.back().line == line_of_throw);
    CHECK(place_of(cause.frames, "wrap_cause") == 0);
    CHECK(place_of(error.frames, "wrap_cause") == 0);
    CHECK(place_of(error.frames, "give_reason") == 1);
    CHECK(place_of(error.frames, "load") == -1);
}

TEST_CASE("trace: a coroutine that was resumed stands on the stack between its callers") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    const auto frames = error_of(cohort::function<resume_failing>()).frames;
    INFO(all_of(frames));
    REQUIRE_FALSE(frames.empty());
    CHECK(frames.back().line == line_of_throw);
    CHECK(place_of(frames, "fail_in_steps") == static_cast<int>(frames.size()) - 2);
    CHECK(place_of(frames, "resume_failing") == 0);
}

TEST_CASE("trace: the oldest call of a closure is its body") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    const int value = 7;
    const int line = __LINE__ + 1;
    const auto fail = [&value](int) { load(value); };
    const auto frames =
        error_of(cohort::closure(fail), cohort::options(1).start_method(cohort::start_method::fork))
            .frames;
    INFO(all_of(frames));
    REQUIRE(frames.size() == 2);
    CHECK(frames[0].line == line);
    CHECK(frames[0].file.ends_with("trace_test.cpp"));
    CHECK(frames[1].line == line_of_throw);
}

}  // namespace trace_test
