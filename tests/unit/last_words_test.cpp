// SPDX-License-Identifier: BSL-1.0
#include "base/values/last_words.hpp"

#include <doctest/doctest.h>

#include <string>

namespace last_words_test {

using cohort::shared_text;
using cohort::base::last_words;

namespace {

cohort::captured with(const std::string& head, const std::string& tail, std::uint64_t lost = 0) {
    cohort::captured err;
    err.head = shared_text(head);
    err.tail = shared_text(tail);
    err.total = head.size() + tail.size() + lost;
    return err;
}

}  // namespace

TEST_CASE("last words: all that was written, without the last newline") {
    CHECK(last_words(with("one\ntwo\n", "")) == "one\ntwo");
    CHECK(last_words(with("one", "")) == "one");
    CHECK(last_words(with("", "")).empty());
    CHECK(last_words(with("\n", "")).empty());
}

TEST_CASE("last words: head and tail are one text if nothing is between them") {
    CHECK(last_words(with("on", "e\ntwo\n")) == "one\ntwo");
}

TEST_CASE("last words: half a line at the begin is left out") {
    CHECK(last_words(with("head", "lf\nwhole\n", 7)) == "whole");
}

TEST_CASE("last words: twenty lines at most") {
    std::string text;
    for (int i = 0; i < 25; ++i)
        text += std::to_string(i) + "\n";
    const auto words = last_words(with(text, ""));
    CHECK(words.starts_with("5\n6\n"));
    CHECK(words.ends_with("\n24"));
}

TEST_CASE("last words: 4 KiB of whole lines at most") {
    const std::string line(1500, 'x');
    CHECK(last_words(with(line + "\n" + line + "\n" + line + "\n", "")) == line + "\n" + line);
    const std::string most(4096, 'y');
    CHECK(last_words(with("z\n" + most + "\n", "")) == most);
}

TEST_CASE("last words: of one line that is longer, its end") {
    const auto words = last_words(with(std::string(10'000, 'x') + "end\n", ""));
    CHECK(words.size() == 4096);
    CHECK(words.ends_with("xend"));
}

}  // namespace last_words_test
