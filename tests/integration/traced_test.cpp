// SPDX-License-Identifier: BSL-1.0
// Traces of programs that are compiled and linked in other ways than this one.
#include "trace_support.hpp"

#include <doctest/doctest.h>

#include <array>
#include <sstream>

namespace traced_test {

using namespace cohort::test;

#ifdef COHORT_PROGRAM_TRACED_OPTIMISED

namespace {

/// What tests/programs/traced.cpp prints.
struct told {
    std::string text;  // of the exception
    std::vector<cohort::stack_frame> frames;
    int line = 0;  // of its source, where it was
};

cohort::stack_frame frame_of(const std::string& line) {
    std::istringstream in(line);
    std::array<std::string, 5> fields;
    for (auto& field : fields)
        std::getline(in, field, '|');
    cohort::stack_frame frame;
    frame.function = fields[0];
    frame.file = fields[1];
    frame.line = std::stoi(fields[2]);
    frame.inlined = fields[3] == "inlined";
    frame.module = fields[4];
    return frame;
}

told told_by(const std::string& program, const std::string& what) {
    told all;
    for (const auto& line : lines_of(printed_by(cohort::command(program, what)))) {
        if (line.starts_with("line "))
            all.line = std::stoi(line.substr(5));
        else if (contains(line, "|"))
            all.frames.push_back(frame_of(line));
        else
            all.text += line + "\n";
    }
    INFO(all.text);
    REQUIRE_FALSE(all.frames.empty());
    for (const auto& frame : all.frames)
        CHECK(frame.module == program);
    return all;
}

const std::string optimised = COHORT_PROGRAM_TRACED_OPTIMISED;

/// work calls train, load is inlined into that and calls check.
void check_call(const told& all, std::string_view innermost) {
    INFO(all_of(all.frames));
    CHECK(all.text.ends_with("\nstd::out_of_range: value 7 is too large\n"));
    CHECK(all.frames.front().function == "traced::work(int, std::string const&)");
    CHECK(contains(all.frames.back().function, innermost));
    CHECK(all.frames.back().file.ends_with("traced.cpp"));
    CHECK(all.frames.back().line == all.line);
    const int inlined = place_of(all.frames, "traced::load(int)");
    REQUIRE(inlined > 0);
    CHECK(all.frames[static_cast<std::size_t>(inlined)].inlined);
    CHECK(place_of(all.frames, "traced::train(int)") == inlined - 1);
}

void check_crash(const told& all) {
    INFO(all_of(all.frames));
    CHECK(all.text.starts_with("process 0 terminated with signal SIGSEGV\nTraceback"));
    CHECK(all.text.ends_with("\nSIGSEGV at address 0x10 (address not mapped)\n"));
    CHECK(contains(all.frames.front().function, "traced::work(int"));
    CHECK(contains(all.frames.back().function, "traced::write_to("));
    CHECK(all.frames.back().line == all.line);
}

void check_coroutine(const told& all) {
    INFO(all_of(all.frames));
    CHECK(all.frames.back().line == all.line);
    const int resumed = place_of(all.frames, "fail_in_steps");
    CHECK(resumed > 0);
    CHECK(place_of(all.frames, "traced::train(int)") == resumed + 1);
}

}  // namespace

TEST_CASE("traced: inlined calls of an optimised program are listed as calls") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    check_call(told_by(optimised, "call"), "traced::check(int)");
}

TEST_CASE("traced: a trace begins with the worker's function, whatever it is and however many "
          "arguments it has") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    for (const auto& program : {optimised, std::string(COHORT_PROGRAM_TRACED_WITHOUT_PIE)}) {
        CHECK(contains(told_by(program, "many").frames.front().function, "traced::work_on_many("));
        for (const char* const what : {"lambda", "closure"}) {
            const auto told = told_by(program, what);
            INFO(all_of(told.frames));
            CHECK(told.frames.front().file.ends_with("traced.cpp"));
            CHECK(contains(told.frames.front().function, "operator()"));
        }
    }
}

TEST_CASE("traced: in an optimised program a coroutine that was resumed stands on the stack") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    check_coroutine(told_by(optimised, "coroutine"));
}

TEST_CASE("traced: a crash of an optimised program is reported with its line") {
    if (crashes_are_sanitized)
        return skip(sanitizer_tells);
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    check_crash(told_by(optimised, "crash"));
}

TEST_CASE("traced: a program with a fixed address has names and lines") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    check_call(told_by(COHORT_PROGRAM_TRACED_WITHOUT_PIE, "call"), "traced::check(int)");
    if (!crashes_are_sanitized)
        check_crash(told_by(COHORT_PROGRAM_TRACED_WITHOUT_PIE, "crash"));
}

#ifdef COHORT_PROGRAM_TRACED_WITHOUT_DEBUG

TEST_CASE("traced: without debug information functions have names and no lines") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    for (const auto* what : {"call", "crash"}) {
        const auto all = told_by(COHORT_PROGRAM_TRACED_WITHOUT_DEBUG, what);
        INFO(all_of(all.frames));
        REQUIRE(all.frames.size() == 2);
        CHECK(all.frames.front().function.starts_with("traced::work(int, std::string const&)"));
        CHECK(all.frames.back().function.starts_with("traced::"));
        CHECK(all.frames.back().file.empty());
        CHECK(all.frames.back().line == 0);
    }
}

TEST_CASE("traced: a stripped program gives type, message and the addresses of the calls") {
    const leak_guard guard;
    const std::string program = COHORT_PROGRAM_TRACED_STRIPPED;
    const auto all = told_by(program, "call");
    CHECK(all.text.ends_with("\nstd::out_of_range: value 7 is too large\n"));
    CHECK(contains(all.text, "  Module \"" + program + "\", offset 0x"));
    CHECK(all.frames.size() == 2);
    const auto crash = told_by(program, "crash");
    CHECK(crash.text.ends_with("\nSIGSEGV at address 0x10 (address not mapped)\n"));
    CHECK(crash.frames.size() == 2);
}

#endif
#ifdef COHORT_PROGRAM_TRACED_STATIC

TEST_CASE("traced: a statically linked program has names and lines") {
    if (!names_are_read)
        return skip(no_names);
    const leak_guard guard;
    check_call(told_by(COHORT_PROGRAM_TRACED_STATIC, "call"), "traced::check(int)");
    check_coroutine(told_by(COHORT_PROGRAM_TRACED_STATIC, "coroutine"));
    check_crash(told_by(COHORT_PROGRAM_TRACED_STATIC, "crash"));
}

#endif
#endif

}  // namespace traced_test
