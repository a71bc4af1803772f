// SPDX-License-Identifier: BSL-1.0
// Patterns of paths and tags, and the count of a sentence.
#include "base/values/quantity.hpp"
#include "output/routes/pattern.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pattern_test {

using cohort::output::at_attempt;
using cohort::output::check_pattern;
using cohort::output::expand;
using cohort::output::names_attempt;
using cohort::output::pattern_values;

namespace {

const pattern_values values{7, 16, 2, "train", "node1"};

std::string refusal(std::string_view pattern) {
    try {
        check_pattern("stdout_to", pattern);
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("pattern: each name becomes its value") {
    CHECK(expand("{index} {size} {attempt} {group} {host}", values) == "7 16 2 train node1");
    CHECK(expand("{index}{index}", values) == "77");
    CHECK(expand("", values).empty());
    CHECK(expand("logs/out.log", values) == "logs/out.log");
}

TEST_CASE("pattern: a double brace is a brace") {
    CHECK(expand("{{{index}}}", values) == "{7}");
    CHECK(expand("{{index}}", values) == "{index}");
    CHECK(expand("a{{", values) == "a{");
    CHECK(expand("}}a", values) == "}a");
}

TEST_CASE("pattern: a number has a format of integers, a text one of strings") {
    CHECK(expand("{index:03}", values) == "007");
    CHECK(expand("{size:x}|{attempt:>4}|{index:}", values) == "10|   2|7");
    CHECK(expand("{group:.3}|{host:_<8}|{host:s}", values) == "tra|node1___|node1");
    CHECK(expand("{index:064}", values).size() == 64);
}

TEST_CASE("pattern: what is no pattern is refused") {
    for (const std::string_view bad : {"{}",
                                       "{",
                                       "}",
                                       "a}b",
                                       "{index",
                                       "{index:",
                                       "{index:03",
                                       "{foo}",
                                       "{index}}",
                                       "{{index}",
                                       "{index:s}",
                                       "{index:.2}",
                                       "{group:d}",
                                       "{group:03}",
                                       "{Index}",
                                       "{ index}",
                                       "{index }",
                                       "{0}",
                                       "{:03}",
                                       "{index:{size}}",
                                       "{index:{}}",
                                       "{index{",
                                       "{index:{",
                                       "{index:65}",
                                       "{index:1000000000}",
                                       "{index:99999999999999999999}",
                                       "{group:.65}",
                                       "{index:c}",
                                       "{index!r}",
                                       "{index:q}"}) {
        INFO(bad);
        CHECK_FALSE(refusal(bad).empty());
        CHECK_THROWS_AS((void)expand(bad, values), std::invalid_argument);
    }
}

TEST_CASE("pattern: the refusal says which setter, which pattern, where and why") {
    CHECK(refusal("logs/{foo}.log") ==
          "cohort: stdout_to: \"logs/{foo}.log\" has at byte 6 the name \"foo\", which is "
          "none of index, size, group, attempt and host");
    CHECK(refusal("a}") == "cohort: stdout_to: \"a}\" has at byte 2 a '}' without its '{'; "
                           "\"}}\" stands for a brace");
    CHECK(refusal("{size:s}").find("the format \"s\", which does not fit size: ") !=
          std::string::npos);
    CHECK(refusal("{size:100}").find("a width or precision above 64") != std::string::npos);
    CHECK(refusal(std::string(100'000, 'x') + "{").size() < 1'000);
}

TEST_CASE("pattern: a group's name does not lead out of its directory") {
    const auto group = [](std::string_view name, std::string_view pattern = "d/{group}/x") {
        return expand(pattern, {0, 1, 0, name, name});
    };
    CHECK(group("a/b") == "d/a_b/x");
    CHECK(group("..") == "d/__/x");
    CHECK(group(".") == "d/_/x");
    CHECK(group("../..") == "d/.._../x");
    CHECK(group("...") == "d/.../x");
    CHECK(group(std::string_view("a\0b\nc", 5)) == "d/a_b_c/x");
    CHECK(group(".", "{group}{host}") == "__");
    CHECK(group(".", ".{group}") == "._");
    CHECK(group("..a", "{group:.2}") == "__");
}

TEST_CASE("pattern: a count has a comma before each three digits") {
    using cohort::base::with_separators;
    CHECK(with_separators(0) == "0");
    CHECK(with_separators(999) == "999");
    CHECK(with_separators(1'000) == "1,000");
    using namespace std::chrono_literals;
    using cohort::base::duration_text;
    CHECK(duration_text(0s) == "0 s");
    CHECK(duration_text(30s) == "30 s");
    CHECK(duration_text(1500ms) == "1.5 s");
    CHECK(duration_text(100ms) == "100 ms");
    CHECK(duration_text(20us) == "20 us");
    CHECK(duration_text(7ns) == "7 ns");
    CHECK(with_separators(123'456) == "123,456");
    CHECK(with_separators(1'234'567) == "1,234,567");
    CHECK(with_separators(std::numeric_limits<std::uint64_t>::max()) ==
          "18,446,744,073,709,551,615");
}

TEST_CASE("pattern: the number of an attempt can come later, with its format") {
    pattern_values later;
    later.index = 3;
    later.attempt = std::nullopt;
    const auto text = expand("{index}/{attempt}/{{x}}/{attempt:03}", later);
    CHECK(names_attempt(text));
    CHECK(at_attempt(text, 0) == "3/0/{x}/000");
    CHECK(at_attempt(text, 12) == "3/12/{x}/012");
    const auto other = expand("{index}{{attempt}}", later);
    CHECK_FALSE(names_attempt(other));
    CHECK(at_attempt(other, 5) == "3{attempt}");
    CHECK(at_attempt("", 5).empty());
}

}  // namespace pattern_test
