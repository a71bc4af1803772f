// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/stderr_tail.hpp"

#include <doctest/doctest.h>

#include <string>

namespace stderr_tail_test {

using cohort::shared_text;
using cohort::groups::stderr_tail;

namespace {

cohort::captured with(const std::string& head, const std::string& tail, std::uint64_t lost = 0) {
    cohort::captured err;
    err.head = shared_text(head);
    err.tail = shared_text(tail);
    err.total = head.size() + tail.size() + lost;
    return err;
}

}  // namespace

TEST_CASE("stderr tail: all that was written, without the last newline") {
    CHECK(stderr_tail(with("one\ntwo\n", "")) == "one\ntwo");
    CHECK(stderr_tail(with("one", "")) == "one");
    CHECK(stderr_tail(with("", "")).empty());
    CHECK(stderr_tail(with("\n", "")).empty());
}

TEST_CASE("stderr tail: head and tail are one text if nothing is between them") {
    CHECK(stderr_tail(with("on", "e\ntwo\n")) == "one\ntwo");
}

TEST_CASE("stderr tail: half a line at the begin is left out") {
    CHECK(stderr_tail(with("head", "lf\nwhole\n", 7)) == "whole");
}

TEST_CASE("stderr tail: twenty lines at most") {
    std::string text;
    for (int i = 0; i < 25; ++i)
        text += std::to_string(i) + "\n";
    const auto words = stderr_tail(with(text, ""));
    CHECK(words.starts_with("5\n6\n"));
    CHECK(words.ends_with("\n24"));
}

TEST_CASE("stderr tail: 4 KiB of whole lines at most") {
    const std::string line(1500, 'x');
    CHECK(stderr_tail(with(line + "\n" + line + "\n" + line + "\n", "")) == line + "\n" + line);
    const std::string most(4096, 'y');
    CHECK(stderr_tail(with("z\n" + most + "\n", "")) == most);
}

TEST_CASE("stderr tail: of one line that is longer, its end") {
    const auto words = stderr_tail(with(std::string(10'000, 'x') + "end\n", ""));
    CHECK(words.size() == 4096);
    CHECK(words.ends_with("xend"));
}

}  // namespace stderr_tail_test
