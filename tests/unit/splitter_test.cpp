// SPDX-License-Identifier: BSL-1.0
// Bytes of a stream become lines, however they come.
#include "output/lines/splitter.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace splitter_test {

using cohort::detail::line_run;
using cohort::output::splitter;

namespace {

/// The lines as one text: each with its ending, then "|" for a complete line and "~" for another.
std::string shown(const line_run& run) {
    std::string text;
    std::size_t at = 0;
    for (const auto& line : run.lines) {
        text += run.text.substr(at, line.size - line.ending);
        text += std::string(line.ending, '$') + (line.complete ? "|" : "~");
        CHECK(line.complete == (line.ending > 0));
        at += line.size;
    }
    CHECK(at == run.text.size());
    return text;
}

std::string split_parts(const std::vector<std::string_view>& parts, splitter::settings s = {}) {
    splitter lines(s);
    line_run run;
    for (const auto part : parts)
        lines.feed(part, run);
    lines.finish(run);
    CHECK(lines.held() == 0);
    return shown(run);
}

std::string split(std::string_view text, splitter::settings s = {}) {
    return split_parts({text}, s);
}

constexpr splitter::settings four{4, false};
constexpr splitter::settings screen{65'536, true};
constexpr splitter::settings screen_of_four{4, true};

/// The rules, one byte after the other.
std::string by_the_rules(std::string_view text, splitter::settings s) {
    std::string result;
    std::string line;
    bool restarts = false;
    const auto end_line = [&] {
        const bool crlf = restarts || (!s.is_screen && line.ends_with('\r'));
        if (!restarts && crlf)
            line.pop_back();
        for (; line.size() > s.longest; line.erase(0, s.longest))
            result += line.substr(0, s.longest) + "~";
        result += line + (crlf ? "$$|" : "$|");
        line.clear();
        restarts = false;
    };
    for (const char c : text) {
        if (c == '\n') {
            end_line();
        } else if (c == '\r' && s.is_screen) {
            restarts = true;
        } else {
            if (restarts)
                line.clear();
            restarts = false;
            line += c;
            if (s.is_screen && line.size() > s.longest) {
                result += line.substr(0, s.longest) + "~";
                line.erase(0, s.longest);
            }
        }
    }
    for (; !line.empty(); line.erase(0, s.longest))
        result += line.substr(0, s.longest) + "~";
    return result;
}

}  // namespace

TEST_CASE("splitter: a line ends with a newline, with or without a carriage return") {
    CHECK(split("one\ntwo\r\n\n\r\n") == "one$|two$$|$|$$|");
}

TEST_CASE("splitter: the last line without a newline is not complete") {
    CHECK(split("one\ntwo") == "one$|two~");
    CHECK(split("one\n") == "one$|");
    CHECK(split("").empty());
    CHECK(split("a\r") == "a\r~");
}

TEST_CASE("splitter: a line may come in parts, and so may its end") {
    CHECK(split_parts({"o", "n", "e", "\r", "\n", "", "two\nth", "ree\n"}) == "one$$|two$|three$|");
    CHECK(split_parts({"a\r", "b\n"}) == "a\rb$|");
}

TEST_CASE("splitter: what is held is delivered") {
    splitter lines({});
    line_run run;
    lines.feed("one\ntwo", run);
    CHECK(lines.held() == 3);
    CHECK(run.text == "one\n");
    lines.feed("\n", run);
    CHECK(lines.held() == 0);
    CHECK(run.text == "one\ntwo\n");
}

TEST_CASE("splitter: a long line is cut, and its rest is a line of its own") {
    CHECK(split("abcde\n", four) == "abcd~e$|");
    CHECK(split("abcdefghij", four) == "abcd~efgh~ij~");
    CHECK(split("abcd\refgh\r\n", four) == "abcd~\refg~h$$|");
}

TEST_CASE("splitter: a line of exactly the longest length is complete, with no empty rest") {
    CHECK(split("abcd\n", four) == "abcd$|");
    CHECK(split("abcd\r\n", four) == "abcd$$|");
    CHECK(split_parts({"abcd", "\n"}, four) == "abcd$|");
    CHECK(split_parts({"abcd", "\r", "\n"}, four) == "abcd$$|");
    CHECK(split("abcdefgh\n", four) == "abcd~efgh$|");
    CHECK(split("abcd", four) == "abcd~");
    CHECK(split("abcd\r", four) == "abcd~\r~");
    CHECK(split_parts({"abcd", "\r", "e"}, four) == "abcd~\re~");
}

TEST_CASE("splitter: every byte passes") {
    std::string all;
    for (int c = 0; c < 256; ++c)
        all += static_cast<char>(c);
    splitter lines({});
    line_run run;
    lines.feed(all, run);
    lines.finish(run);
    CHECK(run.text == all);
    CHECK(run.lines.size() == 2);
}

TEST_CASE("splitter: on a screen a carriage return restarts the line") {
    CHECK(split("10%\r50%\r100%\n", screen) == "100%$|");
    CHECK(split_parts({"10%", "\r", "50%", "\r", "\n"}, screen) == "50%$$|");
    CHECK(split("one\rtwo\r\r\r\nthree\n", screen) == "two$$|three$|");
    CHECK(split("one\r", screen) == "one~");
    CHECK(split("\r", screen).empty());
    CHECK(split("\rone\n\r\n", screen) == "one$|$$|");
}

TEST_CASE("splitter: on a screen the longest length counts from the last carriage return") {
    CHECK(split("abc\rdefg\rhi\n", screen_of_four) == "hi$|");
    CHECK(split("abcd\refgh\n", screen_of_four) == "efgh$|");
    CHECK(split("abcdef\rg\n", screen_of_four) == "abcd~g$|");
}

TEST_CASE("splitter: ten thousand states of a progress bar are one line, in little memory") {
    splitter lines(screen);
    line_run run;
    std::size_t most = 0;
    for (int i = 0; i < 10'000; ++i) {
        lines.feed("\rstep " + std::to_string(i), run);
        most = std::max(most, lines.held());
    }
    lines.feed("\n", run);
    CHECK(shown(run) == "step 9999$|");
    CHECK(most < 100);
}

TEST_CASE("splitter: a length of nothing is taken as one") {
    CHECK(split("ab\n", {0, false}) == "a~b$|");
}

TEST_CASE("splitter: what is held stays near the longest length, whatever comes") {
    splitter lines({1'000, false});
    line_run run;
    for (int i = 0; i < 5'000; ++i) {
        lines.feed(i % 3 == 0 ? std::string(7'001, 'x') : "y", run);
        REQUIRE(lines.held() <= 1'001);
    }
}

TEST_CASE("splitter: random bytes in random parts become the lines that the rules say") {
    for (unsigned seed = 0; seed < 20'000; ++seed) {
        INFO("seed " << seed);
        std::minstd_rand dice(seed);
        const splitter::settings s{1 + dice() % 6, dice() % 2 == 0};
        std::string text;
        for (auto left = dice() % 60; left > 0; --left)
            text += "ab\r\n"[std::min<std::size_t>(dice() % 7, 3)];
        std::vector<std::string_view> parts;
        for (std::string_view rest = text; !rest.empty();) {
            parts.push_back(rest.substr(0, 1 + dice() % 12));
            rest.remove_prefix(parts.back().size());
        }
        REQUIRE(split_parts(parts, s) == by_the_rules(text, s));
    }
}

}  // namespace splitter_test
