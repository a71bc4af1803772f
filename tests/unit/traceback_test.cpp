// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/error_json.hpp"
#include "protocol/record/traceback.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <string>

namespace traceback_test {

using namespace cohort;
using namespace cohort::protocol;

namespace {

stack_frame in_source(std::string file, int line, std::string function) {
    stack_frame made;
    made.file = std::move(file);
    made.line = line;
    made.function = std::move(function);
    return made;
}

error_record error_of(std::string type, std::string message) {
    error_record made;
    made.type = std::move(type);
    made.message = std::move(message);
    return made;
}

crash_record crash_of(int signal, int code, std::uint64_t address = 0) {
    crash_record made;
    made.signal = signal;
    made.code = code;
    made.address = address;
    return made;
}

}  // namespace

TEST_CASE("traceback: calls in Python's form, the newest last, then what was thrown") {
    error_record error = error_of("std::out_of_range", "value 7 too large");
    error.frames = {in_source("/src/train.cpp", 30, "train(int, std::string)"),
                    in_source("/src/train.cpp", 12, "load(int)"), stack_frame()};
    error.frames[1].inlined = true;
    error.frames[2].module = "/usr/lib/libfoo.so";
    error.frames[2].offset = 0x1234;
    error.frames[2].function = "foo_run";
    CHECK(traceback_of(error) == "Traceback (most recent call last):\n"
                                 "  File \"/src/train.cpp\", line 30, in train(int, std::string)\n"
                                 "  File \"/src/train.cpp\", line 12, in load(int) (inlined)\n"
                                 "  Module \"/usr/lib/libfoo.so\", offset 0x1234, in foo_run\n"
                                 "std::out_of_range: value 7 too large");
}

TEST_CASE("traceback: without calls and causes it is the last line") {
    CHECK(traceback_of(error_of("E", "two\nlines")) == "E: two\nlines");
    CHECK(traceback_of(error_of("E", "")) == "E");
    error_record untyped;
    untyped.message = "m";
    CHECK(traceback_of(untyped) == "m");
}

TEST_CASE("traceback: the code of a system_error is shown") {
    error_record error = error_of("std::system_error", "open: No such file or directory");
    error.category = "generic";
    error.code = 2;
    CHECK(traceback_of(error) == "std::system_error [generic:2]: open: No such file or directory");
}

TEST_CASE("traceback: of a recursion three calls are shown, and how many there are more") {
    error_record error = error_of("E", "m");
    const auto lines_of = [&](int repeats) {
        error.frames = {in_source("a.cpp", 1, "main")};
        error.frames.insert(error.frames.end(), static_cast<std::size_t>(repeats),
                            in_source("a.cpp", 2, "f"));
        error.frames.push_back(in_source("a.cpp", 3, "g"));
        return traceback_of(error);
    };
    const std::string start =
        "Traceback (most recent call last):\n  File \"a.cpp\", line 1, in main\n";
    const std::string call = "  File \"a.cpp\", line 2, in f\n";
    const std::string end = "  File \"a.cpp\", line 3, in g\nE: m";
    CHECK(lines_of(3) == start + call + call + call + end);
    CHECK(lines_of(4) ==
          start + call + call + call + "  [Previous line repeated 1 more time]\n" + end);
    CHECK(lines_of(250) ==
          start + call + call + call + "  [Previous line repeated 247 more times]\n" + end);
    error.frames.assign(5, in_source("a.cpp", 2, "f"));
    CHECK(traceback_of(error).ends_with("[Previous line repeated 2 more times]\nE: m"));
}

TEST_CASE("traceback: the first cause comes first") {
    error_record error = error_of("app_error", "no model");
    error.frames = {in_source("app.cpp", 5, "run(int)")};
    error_record next = error_of("load_error", "no weights");
    error_record first = error_of("std::out_of_range", "shard 7");
    first.frames = {in_source("shard.cpp", 9, "shard(int)")};
    first.worker = 2;
    first.pid = 1234;
    error.nested = {next, first};
    const std::string text =
        "In worker 2 (pid 1234) of its own group:\n"
        "Traceback (most recent call last):\n"
        "  File \"shard.cpp\", line 9, in shard(int)\n"
        "std::out_of_range: shard 7\n"
        "\n"
        "The above exception was the direct cause of the following exception:\n"
        "\n"
        "load_error: no weights\n"
        "\n"
        "The above exception was the direct cause of the following exception:\n"
        "\n"
        "Traceback (most recent call last):\n"
        "  File \"app.cpp\", line 5, in run(int)\n"
        "app_error: no model";
    CHECK(traceback_of(error) == text);
    // Made anew from its own result it is the same, with or without calls of its own.
    error.trace = text;
    CHECK(traceback_of(error) == text);
    error.frames.clear();
    CHECK(traceback_of(error) == text);
}

TEST_CASE("traceback: a command's text is kept, as an error and as a cause") {
    error_record python = error_of("ValueError", "bad");
    python.trace = "Traceback (most recent call last):\n  File \"t.py\", line 3\nValueError: bad";
    CHECK(traceback_of(python) == python.trace);
    error_record error = error_of("cohort::process_raised_exception", "worker 0");
    python.worker = 0;
    python.pid = 77;
    error.nested = {python};
    CHECK(traceback_of(error) ==
          "In worker 0 (pid 77) of its own group:\n" + python.trace +
              "\n\nThe above exception was the direct cause of the following exception:\n\n"
              "cohort::process_raised_exception: worker 0");
}

TEST_CASE("traceback: a long one keeps its head and ends with the message") {
    error_record error = error_of("E", "");
    for (int i = 0; i < 256; ++i)
        error.frames.push_back(in_source(std::string(4096, '/'), i + 1, std::string(4096, 'f')));
    for (const std::size_t length : {std::size_t{10}, base::text_limit / 2, base::text_limit - 50,
                                     base::text_limit - 1, base::text_limit}) {
        error.message = std::string(length, 'm');
        error.trace.clear();
        const std::string text = traceback_of(error);
        CHECK(text.size() <= base::text_limit);
        CHECK(text.starts_with("Traceback (most recent call last):\n"));
        CHECK(text.find("bytes left out") != std::string::npos);
        CHECK(text.find("\nE: mmm") != std::string::npos);
        CHECK(text.ends_with(std::string(std::min(length, base::text_limit / 3), 'm')));
        CHECK(text.ends_with(error.message) == (length <= base::text_limit / 2));
    }
}

TEST_CASE("traceback: a name that is not UTF-8 is made so") {
    error_record error = error_of("E", "m");
    error.frames = {in_source("a\xFF", 1, "f")};
    CHECK(base::valid_utf8(traceback_of(error)) == traceback_of(error));
}

TEST_CASE("traceback: a crash shows the signal, the address and the reason") {
    CHECK(traceback_of(crash_of(SIGSEGV, SEGV_MAPERR, 0x10)) ==
          "SIGSEGV at address 0x10 (address not mapped)");
    CHECK(traceback_of(crash_of(SIGSEGV, SEGV_ACCERR)) ==
          "SIGSEGV at address 0x0 (no permission for the address)");
    CHECK(traceback_of(crash_of(SIGSEGV, SI_KERNEL)) == "SIGSEGV (sent by the kernel)");
    CHECK(traceback_of(crash_of(SIGSEGV, SI_USER, 4)) == "SIGSEGV (sent by kill)");
    CHECK(traceback_of(crash_of(SIGBUS, BUS_ADRERR, 0x1000)) ==
          "SIGBUS at address 0x1000 (no such physical address)");
    CHECK(traceback_of(crash_of(SIGILL, ILL_ILLOPN, 1)) ==
          "SIGILL at address 0x1 (illegal operand)");
    CHECK(traceback_of(crash_of(SIGFPE, FPE_INTDIV, 2)) ==
          "SIGFPE at address 0x2 (integer division by zero)");
    CHECK(traceback_of(crash_of(SIGABRT, SI_TKILL)) == "SIGABRT (sent by the process itself)");
    CHECK(traceback_of(crash_of(SIGFPE, 4711, 2)) == "SIGFPE at address 0x2");
    CHECK(traceback_of(crash_of(SIGABRT, -77)) == "SIGABRT");
    crash_record crash = crash_of(SIGSEGV, SEGV_MAPERR, 8);
    crash.frames = {in_source("a.cpp", 1, "f")};
    CHECK(traceback_of(crash) == "Traceback (most recent call last):\n"
                                 "  File \"a.cpp\", line 1, in f\n"
                                 "SIGSEGV at address 0x8 (address not mapped)");
}

}  // namespace traceback_test
