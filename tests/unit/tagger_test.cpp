// SPDX-License-Identifier: BSL-1.0
// How lines look in a file of many workers and on a terminal.
#include "output/lines/splitter.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

namespace tagger_test {

using cohort::detail::line_run;
using cohort::detail::loss;
using cohort::detail::run_part;
using cohort::output::line_style;
using cohort::output::tagger;
using namespace std::chrono_literals;

namespace {

/// The lines of `text`, which end with newlines, of worker `index`.
run_part told(std::string_view text, loss lost = {}, int index = 0) {
    auto run = std::make_shared<line_run>();
    run->index = index;
    run->text = text;
    while (!text.empty()) {
        const std::size_t newline = text.find('\n');
        const bool complete = newline != std::string_view::npos;
        const std::size_t size = complete ? newline + 1 : text.size();
        const bool crlf = size > 1 && complete && text[size - 2] == '\r';
        run->lines.push_back({static_cast<std::uint32_t>(size),
                              static_cast<std::uint8_t>(crlf ? 2 : complete), complete});
        text.remove_prefix(size);
    }
    const std::size_t count = run->lines.size();
    return {std::move(run), 0, count, 0, lost};
}

std::string written(const run_part& lines, line_style style = {}, std::string_view tag = "[0]: ",
                    std::chrono::system_clock::time_point wall = {}) {
    std::string text = "before|";
    tagger(style).write(text, lines, tag, wall);
    return text.substr(7);
}

}  // namespace

TEST_CASE("tagger: the tag stands before each line") {
    CHECK(written(told("one\ntwo\n")) == "[0]: one\n[0]: two\n");
    CHECK(written(told("one\n"), {}, "") == "one\n");
    CHECK(written(told("\n\n")) == "[0]: \n[0]: \n");
}

TEST_CASE("tagger: a line ends in one newline") {
    CHECK(written(told("one\r\ntwo")) == "[0]: one\n[0]: two\n");
    CHECK(written(told("a\rb\n")) == "[0]: a\rb\n");
}

TEST_CASE("tagger: a target that does not end lines gets their bytes as they are") {
    line_style style;
    style.ends_lines = false;
    CHECK(written(told("one\r\ntwo\nthree"), style, "") == "one\r\ntwo\nthree");
}

TEST_CASE("tagger: only the lines that are given are written") {
    run_part part = told("one\ntwo\nthree\nfour\n");
    part.first = 1;
    part.offset = 4;
    part.count = 2;
    CHECK(written(part) == "[0]: two\n[0]: three\n");
}

TEST_CASE("tagger: every byte passes") {
    const std::string_view text("a\0\xff\t\033[1mb\n", 10);
    CHECK(written(told(text), {}, "") == text);
}

TEST_CASE("tagger: the time stands before the tag, in UTC with milliseconds") {
    line_style style;
    style.timestamps = true;
    using namespace std::chrono;
    const auto wall = sys_days(2026y / November / 22) + 14h + 3min + 7s + 123'999us;
    CHECK(written(told("one\ntwo\n"), style, "[0]: ", wall) ==
          "2026-11-22T14:03:07.123Z [0]: one\n2026-11-22T14:03:07.123Z [0]: two\n");
    CHECK(written(told("x\n"), style, "", system_clock::time_point{}) ==
          "1970-01-01T00:00:00.000Z x\n");
    CHECK(written(told("x\n"), style, "", system_clock::time_point{} - 1ms) ==
          "1969-12-31T23:59:59.999Z x\n");
}

TEST_CASE("tagger: tags have six colours in turn, each reset after the tag") {
    line_style style;
    style.colours_tags = true;
    CHECK(written(told("x\n"), style) == "\033[36m[0]: \033[0mx\n");
    CHECK(written(told("x\n", {}, 1), style, "[1]: ") == "\033[33m[1]: \033[0mx\n");
    CHECK(written(told("x\n", {}, 6), style, "[6]: ") == "\033[36m[6]: \033[0mx\n");
    CHECK(written(told("x\n"), style, "") == "x\n");
}

TEST_CASE("tagger: on a terminal other ways to change later text end with the line too") {
    line_style style;
    style.is_terminal = true;
    CHECK(written(told("\x9b"
                       "31mred\n"),
                  style) == "[0]: \x9b"
                            "31mred\033[0m\n");
    CHECK(written(told("\xc2\x9b"
                       "31mred\n"),
                  style) == "[0]: \xc2\x9b"
                            "31mred\033[0m\n");
    CHECK(written(told("\016lines\n"), style) == "[0]: \016lines\033[0m\017\n");
    CHECK(written(told("\016lines\n")) == "[0]: \016lines\n");
}

TEST_CASE("tagger: on a terminal a line's own colours end with it") {
    line_style style;
    style.is_terminal = true;
    CHECK(written(told("\033[31mred\nplain\n\033[1mbold\r\n\033[4m"), style) ==
          "[0]: \033[31mred\033[0m\n[0]: plain\n[0]: \033[1mbold\033[0m\n[0]: \033[4m\033[0m\n");
    CHECK(written(told("\033[31mred\n")) == "[0]: \033[31mred\n");
}

TEST_CASE("tagger: a loss is a line of its own before the lines") {
    CHECK(written(told("x\n", {120, 9'000})) ==
          "[0]: ... 120 lines, 9,000 bytes left out\n[0]: x\n");
    CHECK(written(told("x\n", {1, 1})) == "[0]: ... 1 line, 1 byte left out\n[0]: x\n");
}

TEST_CASE("tagger: the empty line that tells a loss adds nothing to it") {
    run_part only = told("", {3, 12});
    auto run = std::make_shared<line_run>();
    run->lines.push_back({0, 0, false});
    only.run = run;
    only.count = 1;
    CHECK(written(only) == "[0]: ... 3 lines, 12 bytes left out\n");
}

}  // namespace tagger_test
