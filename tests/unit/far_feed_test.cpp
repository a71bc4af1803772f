// SPDX-License-Identifier: BSL-1.0
// The feed of a worker on another machine.
#include "output/streams/far_streams.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace far_feed_test {

using cohort::output::far_writer;

namespace {

struct feed {
    std::vector<std::string> sent;
    std::map<int, std::error_code> over;  // by id
    far_writer writer{[this](std::string_view text, bool is_end) {
        sent.emplace_back(is_end ? "END" : std::string(text));
    }};

    void write(int id, std::string text) {
        writer.write(static_cast<std::uint64_t>(id), std::move(text),
                     [this, id](std::error_code error) { over[id] = error; });
    }
};

}  // namespace

TEST_CASE("far feed: a text is over when the worker has taken it") {
    feed to;
    to.write(1, "a");
    to.write(2, "");
    CHECK(to.sent == std::vector<std::string>{"a", ""});
    CHECK(to.over.empty());
    CHECK(to.writer.answered(true));
    CHECK(to.over == std::map<int, std::error_code>{{1, {}}});
    CHECK(to.writer.answered(true));
    CHECK(to.over.size() == 2);
    CHECK_FALSE(to.writer.answered(true));
}

TEST_CASE("far feed: no more is under way than the window holds") {
    feed to;
    to.write(1, std::string(200'000, 'x'));
    std::size_t size = 0;
    std::size_t answered = 0;
    for (; answered < to.sent.size(); ++answered) {
        std::size_t under_way = 0;
        for (std::size_t i = answered; i < to.sent.size(); ++i)
            under_way += to.sent[i].size() + far_writer::piece_cost;
        CHECK(under_way <= far_writer::window);
        CHECK(to.over.empty());
        size += to.sent[answered].size();
        REQUIRE(to.writer.answered(true));
    }
    CHECK(size == 200'000);
    CHECK(to.over.contains(1));
}

TEST_CASE("far feed: what is refused ends its text alone, with EPIPE") {
    feed to;
    to.write(1, std::string(200'000, 'x'));
    to.write(2, "b");
    const auto sent = to.sent.size();
    CHECK(to.writer.answered(false));
    CHECK(to.over ==
          std::map<int, std::error_code>{{1, std::make_error_code(std::errc::broken_pipe)}});
    CHECK(to.sent.size() == sent + 1);  // the other text; the rest of this one is not sent
    CHECK(to.sent.back() == "b");
    while (to.writer.answered(true)) {
    }
    CHECK_FALSE(to.over.at(2));
}

TEST_CASE("far feed: a cancelled text is over at once, and its answers are still expected") {
    feed to;
    to.write(1, std::string(200'000, 'x'));
    const auto sent = to.sent.size();
    CHECK(to.writer.cancel(1));
    CHECK_FALSE(to.writer.cancel(1));
    CHECK(to.over.at(1) == std::errc::operation_canceled);
    for (std::size_t i = 0; i < sent; ++i)
        CHECK(to.writer.answered(true));
    CHECK(to.sent.size() == sent);
    CHECK_FALSE(to.writer.answered(true));
}

TEST_CASE("far feed: the end comes behind the texts before it, and texts may follow") {
    feed to;
    to.write(1, std::string(60'000, 'x'));
    to.writer.close_after_all();
    to.write(2, "b");
    while (to.writer.answered(true)) {
    }
    REQUIRE(to.sent.size() == 4);
    CHECK(to.sent[2] == "END");
    CHECK(to.sent[3] == "b");
}

TEST_CASE("far feed: after the worker's end every text is over with EPIPE") {
    feed to;
    to.write(1, "a");
    to.writer.end();
    CHECK(to.over.at(1) == std::errc::broken_pipe);
    CHECK(to.writer.answered(true));  // comes late
    to.write(2, "b");
    CHECK(to.over.at(2) == std::errc::broken_pipe);
    CHECK(to.sent.size() == 1);
}

}  // namespace far_feed_test
