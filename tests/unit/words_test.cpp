// SPDX-License-Identifier: BSL-1.0
#include "base/text/text.hpp"

#include <cohort/detail/plan.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <typeinfo>

namespace words_test {

using namespace std::chrono_literals;
using cohort::base::command_line;
using cohort::base::shell_line;
using cohort::base::time_of_day;
using cohort::base::time_of_day_in;
using std::chrono::system_clock;

void some_work(int, const std::string&) {}
namespace {
void hidden(int) {}
}  // namespace

TEST_CASE("words: a command line quotes what a shell would not take as it is") {
    CHECK(command_line({"sleep", "1000"}) == "sleep 1000");
    CHECK(command_line({"sh", "-c", "exit 3"}) == "sh -c 'exit 3'");
    CHECK(command_line({"echo", "", "it's", "a\nb", "$HOME"}) ==
          "echo '' 'it'\\''s' 'a\nb' '$HOME'");
    CHECK(command_line({}).empty());
    const auto cut = command_line({"echo", std::string(10'000, 'x'), "y"});
    CHECK(cut.size() <= 4'200);
    CHECK(cut.ends_with("x ..."));
}

TEST_CASE("words: a line for any shell quotes a first word that is no path, and cuts nothing off") {
    CHECK(shell_line({"/bin/sh", "-c", "exit 3"}) == "/bin/sh -c 'exit 3'");
    CHECK(shell_line({"time", "A=b", "=ls", "it's", ""}) == "'time' A=b '=ls' 'it'\\''s' ''");
    CHECK(shell_line({"/a=b"}) == "'/a=b'");
    CHECK(shell_line({}).empty());
    CHECK(shell_line({"/x", std::string(10'000, 'x')}).size() == 10'003);
}

TEST_CASE("words: the name of a function is as the compiler writes it") {
    using cohort::detail::function_name;
    using cohort::detail::function_tag;
    CHECK(function_name(typeid(function_tag<some_work>)) == "words_test::some_work");
    CHECK(function_name(typeid(function_tag<hidden>)).ends_with("::hidden"));
}

TEST_CASE("words: a time of day is written by ISO 8601 in UTC, and read back") {
    const system_clock::time_point when(1'795'000'000'123ms);
    CHECK(time_of_day(when) == "2026-11-18T11:06:40.123Z");
    CHECK(time_of_day_in(time_of_day(when)) == when);
    CHECK(time_of_day(system_clock::time_point()) == "1970-01-01T00:00:00.000Z");
    for (const auto* text :
         {"", "2026-11-18", "2026-13-18T11:06:40.123Z", "2026-11-18 11:06:40.123Z",
          "2026-11-1xT11:06:40.123Z", "2026-02-30T11:06:40.123Z"})
        CHECK(time_of_day_in(text) == system_clock::time_point());
}

}  // namespace words_test
