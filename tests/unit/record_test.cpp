// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/error_json.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

namespace record_test {

using namespace cohort;
using namespace cohort::protocol;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::optional<error_record> read(std::string_view text) {
    return read_error(bytes_of(text), text.size(), {});
}

error_record made(std::string type, std::string message, std::string trace) {
    error_record error;
    error.type = std::move(type);
    error.message = std::move(message);
    error.trace = std::move(trace);
    return error;
}

bool is_valid_utf8(const std::string& text) { return base::valid_utf8(text) == text; }

/// What holds for every record, whatever it was read from.
void check_sound(const std::optional<error_record>& error) {
    if (!error)
        return;
    CHECK(error->message.size() <= base::text_limit);
    CHECK(error->trace.size() <= base::text_limit);
    CHECK(error->trace.ends_with(error->message));
    CHECK(is_valid_utf8(error->type + error->message + error->trace));
    CHECK((error->type + error->message + error->trace).find('\0') == std::string::npos);
}

std::string random_bytes(std::mt19937& random, std::size_t length) {
    std::string text(length, '\0');
    for (char& c : text)
        c = static_cast<char>(random());
    return text;
}

const std::string torch_record =
    R"({"message": {"message": "ValueError: bad \u00e9 input", "extraInfo": {"py_callstack": )"
    R"("Traceback (most recent call last):\n  File \"t.py\", line 3\nValueError: bad \u00e9 input\n", )"
    R"("timestamp": "1700000000"}, "errorCode": 1}})";

}  // namespace

TEST_CASE("record: what is written is read back") {
    const error_record error = made("std::out_of_range", "at(7): \"x\"\n\t\x01",
                                    "std::out_of_range: at(7): \"x\"\n\t\x01");
    CHECK(read(write_error(error)) == error);
    CHECK(read(write_error(made("T", "", "T: "))) == made("T", "", "T: "));
}

TEST_CASE("record: invalid UTF-8 and NULs are replaced on the way") {
    const auto error = read(write_error(made("T", std::string("a\xFFz\0.", 5), "")));
    REQUIRE(error);
    CHECK(error->message == "a\xEF\xBF\xBDz\xEF\xBF\xBD.");
    CHECK(error->trace == "T: a\xEF\xBF\xBDz\xEF\xBF\xBD.");
}

TEST_CASE("record: a huge text keeps its head and its tail and fits the limit") {
    const std::string text = "HEAD" + std::string(20 << 20, '\x01') + "TAIL";
    for (const std::size_t limit : {record_limit, short_record_limit}) {
        const std::string json = write_error(made("T", text, "T: " + text), limit);
        CHECK(json.size() <= limit);
        const auto error = read(json);
        check_sound(error);
        REQUIRE(error);
        CHECK(error->type == "T");
        CHECK(error->message.starts_with("HEAD"));
        CHECK(error->message.ends_with("TAIL"));
        CHECK(error->message.find("bytes left out") != std::string::npos);
    }
}

TEST_CASE("record: no limit is too small for a record that can be read") {
    for (std::size_t limit = 0; limit < 200; ++limit) {
        CHECK(read(write_error(made("some_type", "some text", "trace"), limit)));
    }
}

TEST_CASE("record: torch's @record splits into type, message and trace") {
    const auto error = read(torch_record);
    REQUIRE(error);
    CHECK(error->type == "ValueError");
    CHECK(error->message == "bad \u00e9 input");
    CHECK(error->trace == "Traceback (most recent call last):\n  File \"t.py\", line "
                          "3\nValueError: bad \u00e9 input");
}

TEST_CASE("record: torch's second form is the message alone") {
    auto expected = made("", "it broke: badly", "it broke: badly");
    expected.timestamp = std::chrono::system_clock::time_point(std::chrono::seconds(12));
    CHECK(read(R"({"message": "it broke: badly", "timestamp": 12})") == expected);
}

TEST_CASE("record: torch's message without a type's name in front stays whole") {
    CHECK(read(R"({"message": {"message": "no type: here"}})") ==
          made("", "no type: here", "no type: here"));
    CHECK(read(R"({"message": {"message": "pkg.Err: x"}})") == made("pkg.Err", "x", "pkg.Err: x"));
}

TEST_CASE("record: a trace that does not end with the message gets it as its last line") {
    CHECK(read(R"({"type": "E", "message": "m", "trace": "#0 main\n"})") ==
          made("E", "m", "#0 main\nE: m"));
}

TEST_CASE("record: other JSON, plain text and torn JSON are the message") {
    for (const std::string text :
         {"[1, 2]", "17", "\"text\"", "null", "{}", R"({"msg": "x"})", R"({"message": 5})",
          "plain words", R"({"message": "torn)", R"({"message": {"message": 7}})",
          R"({"message": ""})", "{\"a\":1} trailing"}) {
        CAPTURE(text);
        CHECK(read("  \n" + text + "\n") == made("", text, text));
    }
}

TEST_CASE("record: nothing but white space and NULs is no record") {
    CHECK(!read(""));
    CHECK(!read(" \n\t\r"));
    CHECK(!read(std::string(4096, '\0')));
    CHECK(!read_error(bytes_of(std::string(4096, '\0')), 1 << 30, {}));
}

TEST_CASE("record: NULs around and inside a text do no harm") {
    CHECK(read(std::string(100, '\0') + R"({"message": "m"})" + std::string(100, '\0'))->message ==
          "m");
    CHECK(read(std::string("a\0b", 3))->message == "a\xEF\xBF\xBD"
                                                   "b");
    CHECK(read(R"({"message": "a\u0000b"})")->message == "a\xEF\xBF\xBD"
                                                         "b");
}

TEST_CASE("record: a JSON text with bytes that are not UTF-8 is still understood") {
    CHECK(read("{\"message\": \"a\xFF\"}")->message == "a\xEF\xBF\xBD");
}

TEST_CASE("record: deeply nested JSON is plain text") {
    for (const std::string open : {"[", "{\"message\":", "[{\"a\":"}) {
        std::string bomb;
        while (bomb.size() < (4 << 20) - open.size())
            bomb += open;
        const auto error = read(bomb);
        REQUIRE(error);
        check_sound(error);
        CHECK(error->message.starts_with(open));
    }
    CHECK(read(std::string(60, '[') + std::string(60, ']'))->message.size() == 120);
}

TEST_CASE("record: JSON that is nested deeper than any record is the message") {
    const std::string text =
        R"({"message": "m", "x": )" + std::string(100, '[') + std::string(100, ']') + "}";
    CHECK(read(text)->message == text);
}

TEST_CASE("record: brackets inside strings are not depth") {
    CHECK(read(R"({"message": ")" + std::string(1000, '[') + R"(\"[[", "type": "T"})")->type ==
          "T");
}

TEST_CASE("record: of a huge file head and tail are kept and the rest is counted") {
    const std::string head = "first words " + std::string(1 << 20, 'a');
    const std::string tail = std::string(1 << 20, 'b') + " last words\n\n";
    const std::uint64_t size = std::uint64_t{1} << 40;
    const auto error = read_error(bytes_of(head), size, bytes_of(tail));
    REQUIRE(error);
    check_sound(error);
    CHECK(error->message.starts_with("first words"));
    CHECK(error->message.ends_with("last words"));
    CHECK(error->message.find("bytes left out ...]") != std::string::npos);
    CHECK(error->message.find("\n[... 10995") != std::string::npos);
}

TEST_CASE("record: a head and a tail that meet or overlap are the whole") {
    const std::string_view text = torch_record;
    for (const std::size_t overlap : {0, 1, 20}) {
        const auto error = read_error(bytes_of(text.substr(0, 50)), text.size(),
                                      bytes_of(text.substr(50 - overlap)));
        REQUIRE(error);
        CHECK(error->type == "ValueError");
    }
}

TEST_CASE("record: huge heads and tails that are not UTF-8 stay within the limit") {
    const std::string odd(2 << 20, '\x80');
    check_sound(read(odd));
    check_sound(read_error(bytes_of(odd), std::uint64_t{1} << 50, bytes_of(odd)));
    check_sound(read_error(bytes_of("x"), std::uint64_t(-1), {}));
    const std::string message(base::text_limit - 10, 'm');
    check_sound(read(R"({"type": "TypeError", "message": ")" + message + R"(", "trace": "t"})"));
}

TEST_CASE("record: ten thousand random and damaged files give a sound record or none") {
    std::mt19937 random(42);
    const std::string own = write_error(made("T", "message", "trace\nT: message"));
    for (int round = 0; round < 10'000; ++round) {
        std::string text;
        switch (round % 4) {
        case 0:
            text = random_bytes(random, random() % 300);
            break;
        case 1:
            text = torch_record.substr(0, random() % torch_record.size());
            break;
        case 2:
            text = own.substr(random() % own.size());
            break;
        default:
            text = random() % 2 == 0 ? own : torch_record;
        }
        for (unsigned change = random() % 3; change > 0 && !text.empty(); --change)
            text[random() % text.size()] = static_cast<char>(random());
        const std::uint64_t size = text.size() + (round % 5 == 0 ? random() % 1000 : 0);
        check_sound(read_error(bytes_of(text), size,
                               bytes_of(std::string_view(text).substr(0, random() % 9))));
    }
}

TEST_CASE("record: valid UTF-8 is distinguished from what only looks like it") {
    for (const std::string good :
         {"", "ascii", "\u00e9", "\u20ac", "\U0001F600", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}) {
        CHECK(base::valid_utf8(good) == good);
    }
    for (const std::string bad :
         {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\x80", "\xE2\x82", "\xFF"}) {
        CAPTURE(bad);
        std::string replaced;
        for (std::size_t i = 0; i < bad.size(); ++i)
            replaced += "\xEF\xBF\xBD";
        CHECK(base::valid_utf8(bad) == replaced);
    }
}

TEST_CASE("record: a text that is cleaned and cut counts the bytes left out") {
    const std::string bad(3'000'000, '\xFF');
    const auto text = base::clean_and_bounded(bad, 1000);
    CHECK(text.size() <= 1000);
    const auto at = text.find("[... ");
    REQUIRE(at != std::string::npos);
    CHECK(std::stoi(text.substr(at + 5)) > 2'990'000);
}

TEST_CASE("record: a bounded text holds whole characters only") {
    std::string euros;
    while (euros.size() < 3000)
        euros += "\u20ac";
    for (std::size_t limit = 0; limit < 400; ++limit) {
        CAPTURE(limit);
        const std::string text = base::bounded(euros, limit);
        CHECK(text.size() <= limit);
        CHECK(is_valid_utf8(text));
    }
    CHECK(base::bounded("short", 5) == "short");
}

}  // namespace record_test
