// SPDX-License-Identifier: BSL-1.0
#include "base/text/text.hpp"
#include "protocol/record/error_json.hpp"
#include "protocol/record/fields.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <string>

namespace crash_json_test {

using namespace cohort;
using namespace cohort::protocol;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::optional<crash_record> crash(std::string_view text) { return read_crash(bytes_of(text)); }
std::vector<activity> activities(std::string_view text) { return read_activities(bytes_of(text)); }

const std::string written =
    R"({"signal":11,"code":1,"address":18446744073709551615,"frames":[)"
    R"({"m":"/bin/x","b":"f00d","o":4660},{"m":"/lib/a,]}\"{[y","b":"","o":2},{"o":3}]})";

const std::string threads =
    R"({"threads":[{"id":7,"name":"main","state":"S","wait":"futex_wait_queue","frames":[)"
    R"({"m":"/bin/x","o":1},{"m":"/bin/x","o":2}]},{"id":8,"name":"io","state":"R","frames":[)"
    R"({"m":"/lib/y","o":3}]}]})";

/// How many objects of a frame `text` holds whole.
std::size_t whole_frames(std::string_view text) {
    std::size_t count = 0;
    for (const std::string end : {"4660}", "\"o\":2}", "\"o\":3}"})
        count += text.find(end) != std::string_view::npos;
    return count;
}

}  // namespace

TEST_CASE("crash json: what the handler writes is read, newest call last") {
    const auto read = crash(written);
    REQUIRE(read);
    CHECK(read->signal == SIGSEGV);
    CHECK(read->code == 1);
    CHECK(read->address == UINT64_MAX);
    REQUIRE(read->frames.size() == 3);
    CHECK(read->frames[0].offset == 3);
    CHECK(read->frames[1].module == "/lib/a,]}\"{[y");
    CHECK(read->frames[2].module == "/bin/x");
    CHECK(read->frames[2].build_id == "f00d");
    CHECK(read->frames[2].offset == 4660);
    CHECK(read->trace.ends_with("SIGSEGV at address 0xffffffffffffffff (address not mapped)"));
}

TEST_CASE("crash json: cut at any byte, the whole frames are read") {
    const std::size_t first_comma = written.find(',');
    for (std::size_t length = 0; length <= written.size(); ++length) {
        const auto text = std::string_view(written).substr(0, length);
        CAPTURE(text);
        const auto read = crash(text);
        REQUIRE(read.has_value() == (length > first_comma));
        if (!read)
            continue;
        CHECK(read->signal == SIGSEGV);
        REQUIRE(read->frames.size() == whole_frames(text));
        if (!read->frames.empty())
            CHECK(read->frames.back().offset == 4660);
        // A file is as long as it was made, not as it was written.
        CHECK(crash(std::string(text) + std::string(50, '\0')) == read);
    }
}

TEST_CASE("crash json: a cut number is not taken for a shorter one") {
    CHECK(crash(R"({"signal":11,"code":1,"address":12)")->address == 0);
    CHECK(crash(R"({"signal":11,"code":1,"address":12,)")->address == 12);
    CHECK_FALSE(crash(R"({"signal":1)"));
}

TEST_CASE("crash json: only the signals of a program's own faults are accepted") {
    for (int signal = -1; signal < 70; ++signal) {
        const bool fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGILL ||
                           signal == SIGFPE || signal == SIGABRT;
        CHECK(crash("{\"signal\":" + std::to_string(signal) + "}").has_value() == fault);
    }
    CHECK_FALSE(crash(R"({"signal":"11"})"));
    CHECK_FALSE(crash(R"({"signal":11.0})"));
    CHECK_FALSE(crash(R"({"code":1})"));
}

TEST_CASE("crash json: any other text is no crash") {
    for (const std::string text :
         {"", "null", "[]", "[{\"signal\":11}]", "11", "words, and more", "{", "}", "{]", "{{",
          "{\"signal\":11,\x01,", "\"", "{\"signal\":11 \"code\":1,"}) {
        CAPTURE(text);
        CHECK_FALSE(crash(text));
        CHECK(activities(text).empty());
    }
    CHECK_FALSE(crash(std::string(4096, '\0')));
    CHECK_FALSE(crash(std::string(2 << 20, '[')));
    std::string bomb;
    while (bomb.size() < crash_limit)
        bomb += "{\"a\":[";
    CHECK_FALSE(crash(bomb));
}

TEST_CASE("crash json: of an endless text the beginning is read, up to the limit of frames") {
    std::string endless = R"({"signal":6,"frames":[{"o":1})";
    while (endless.size() < 3 * crash_limit)
        endless += R"(,{"o":2})";
    const auto read = crash(endless);
    REQUIRE(read);
    CHECK(read->frames.size() == frame_limit);
    CHECK(read->frames.back().offset == 1);
}

TEST_CASE("crash json: activities list each thread with its name, state and calls") {
    const auto read = activities(threads);
    REQUIRE(read.size() == 2);
    CHECK(read[0].id == 7);
    CHECK(read[0].name == "main");
    CHECK(read[0].state == 'S');
    CHECK(read[0].wait_channel == "futex_wait_queue");
    REQUIRE(read[0].frames.size() == 2);
    CHECK(read[0].frames[0].offset == 2);
    CHECK(read[0].frames[1].offset == 1);
    CHECK(read[1].id == 8);
    CHECK(read[1].wait_channel.empty());
    CHECK(read[1].frames.size() == 1);
}

TEST_CASE("crash json: activities cut at any byte keep the threads and frames before it") {
    std::size_t seen = 0;
    for (std::size_t length = 0; length <= threads.size(); ++length) {
        const auto text = std::string_view(threads).substr(0, length);
        CAPTURE(text);
        const auto read = activities(text);
        std::size_t frames = 0, whole = 0;
        for (const activity& thread : read)
            frames += thread.frames.size();
        for (const std::string end : {"\"o\":1}", "\"o\":2}", "\"o\":3}"})
            whole += text.find(end) != std::string_view::npos;
        CHECK(frames == whole);
        CHECK(read.size() >= seen);
        seen = read.size();
    }
    CHECK(seen == 2);
}

TEST_CASE("crash json: unknown members of activities are ignored") {
    const auto read = activities(
        R"({"threads":[7,{"id":-3,"name":5,"state":"SS","wait":[],"frames":{}},{"state":"\u00e9"}]})");
    CHECK(read.empty());
    const auto known = activities(R"({"threads":[{"id":3,"state":"?","name":7}]})");
    REQUIRE(known.size() == 1);
    CHECK(known[0].id == 3);
    CHECK(known[0].name.empty());
    CHECK(activities(R"({"threads":{"id":1}})").empty());
}

}  // namespace crash_json_test
