// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/line_run.hpp>
#include <cohort/errors.hpp>
#include <cohort/format.hpp>
#include <cohort/json.hpp>
#include <cohort/outcome.hpp>
#include <cohort/output.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace output_values_test {

using cohort::captured;
using cohort::outcome;
using cohort::output_line;
using cohort::report;
using cohort::shared_text;
using nlohmann::json;
using namespace std::string_literals;

namespace {

captured captured_of(std::string head, std::string tail, std::uint64_t total) {
    captured text;
    text.head = shared_text(std::move(head));
    text.tail = shared_text(std::move(tail));
    text.total = total;
    return text;
}

/// What comes back of a captured stream after JSON.
captured again(const captured& text) {
    auto outcomes = std::make_shared<std::vector<outcome>>(1);
    outcomes->front().err = text;
    try {
        std::rethrow_exception(cohort::exception_from_json(
            to_json(cohort::process_exception("failed", 0, 1, outcomes))));
    } catch (const cohort::process_exception& e) {
        CHECK(e.outcomes().at(0).out == captured());
        return e.outcomes().at(0).err;
    }
}

}  // namespace

TEST_CASE("output values: a stream is printed by its name") {
    const std::optional<output_line> line{std::in_place};
    CHECK(fmt::format("{} {}", line->stream, cohort::stream::err) == "stdout stderr");
    CHECK(fmt::format("{:>7}", cohort::stream::err) == " stderr");
    CHECK(to_string(cohort::stream::out) == "stdout"s);
}

TEST_CASE("output values: a line is a value and no aggregate") {
    output_line line;
    CHECK(line.index == -1);
    CHECK(line.attempt == 0);
    CHECK_FALSE(line.complete);
    CHECK(line.lost_before == 0);
    const output_line copy = line;
    line.text = "x";
    CHECK(copy != line);
    CHECK_FALSE(std::is_aggregate_v<output_line>);
    CHECK_FALSE(std::is_aggregate_v<captured>);
    CHECK_FALSE(std::is_aggregate_v<shared_text>);
}

TEST_CASE("output values: a shared text is used as a string, and its copies share it") {
    shared_text copy;
    CHECK(copy.empty());
    const char* place = nullptr;
    {
        shared_text first("abc\0d"s);
        copy = first;
        place = first.data();
        shared_text moved(std::move(first));
        CHECK(first == moved);
    }
    CHECK(copy.data() == place);
    CHECK(copy == "abc\0d"s);
    CHECK("abc\0d"s == copy);
    CHECK(copy != "abc");
    CHECK(copy < "b"s);
    const std::string text = copy;
    CHECK(text == copy);
    CHECK(std::string(copy) == text);
    CHECK(copy.substr(1, 2) == "bc");
    CHECK(copy.starts_with("ab"));
    const shared_text abc("abc"s);
    CHECK("<"s + abc + ">" == "<abc>");
    CHECK(abc + abc + abc == "abcabcabc");
    CHECK("<" + abc == "<abc");
    CHECK(abc.c_str() == "abc"s);
    CHECK(shared_text().c_str() == ""s);
    CHECK(fmt::format("{:>6}", shared_text("abc"s)) == "   abc");
    std::ostringstream out;
    out << shared_text("abc"s);
    CHECK(out.str() == "abc");
}

TEST_CASE("output values: the text of a captured stream says how much was left out") {
    CHECK(captured().text().empty());
    CHECK(captured().lost() == 0);
    const auto whole = captured_of("head", "tail", 8);
    CHECK(whole.lost() == 0);
    CHECK(whole.text() == "headtail");
    const auto cut = captured_of("head", "tail", 12'296);
    CHECK(cut.lost() == 12'288);
    CHECK(cut.text() == "head\n... 12,288 bytes left out ...\ntail");
    CHECK(captured_of("", "", 5).text() == "\n... 5 bytes left out ...\n");
    CHECK(captured_of("head", "", 1).lost() == 0);
    CHECK(whole == captured_of("head", "tail", 8));
    CHECK(whole != cut);
    CHECK(whole != captured_of("hea", "dtail", 8));
}

TEST_CASE("output values: told lines are copied without their ends, and a loss stands before the "
          "first") {
    namespace detail = cohort::detail;
    auto run = std::make_shared<detail::line_run>();
    run->index = 3;
    run->from = cohort::stream::err;
    run->time = std::chrono::steady_clock::time_point(std::chrono::seconds(7));
    run->text = "skipped\none\r\n\nlast";
    run->lines = {{8, 1, true}, {5, 2, true}, {1, 1, true}, {4, 0, false}};
    const auto lines = detail::lines_of({{run, 1, 3, 8, {2, 99}}, {run, 0, 1, 0, {}}});
    REQUIRE(lines.size() == 4);
    CHECK(lines[0].index == 3);
    CHECK(lines[0].attempt == 0);
    CHECK(lines[0].stream == cohort::stream::err);
    CHECK(lines[0].time == run->time);
    CHECK(lines[0].text == "one");
    CHECK(lines[0].complete);
    CHECK(lines[0].lost_before == 99);
    CHECK(lines[1].text.empty());
    CHECK(lines[1].lost_before == 0);
    CHECK(lines[2].text == "last");
    CHECK_FALSE(lines[2].complete);
    CHECK(lines[3].text == "skipped");
    CHECK(detail::lines_of({}).empty());
    CHECK(lines[0].host.empty());
    run->host = std::make_shared<const std::string>("node03");
    CHECK(detail::line_of({run, 1, 1, 8, {}}).host == "node03");
}

TEST_CASE("output values: a captured stream comes back from JSON") {
    for (const auto& text : {captured(), captured_of("a", "", 1), captured_of("a\n", "b\u00e9", 9),
                             captured_of("", "tail", 100), captured_of("", "", 7)})
        CHECK(again(text) == text);
}

TEST_CASE("output values: bytes that JSON replaces leave the counts as they were") {
    const auto text = again(captured_of("\xff\xfe", "a\0\xff"s, 10));
    CHECK(text.head == "\uFFFD\uFFFD");
    CHECK(text.tail == "a\uFFFD\uFFFD");
    CHECK(text.total == 10);
    CHECK(text.lost() == 5);
    CHECK(again(text) == text);
}

TEST_CASE("output values: JSON keeps 1 MiB of a captured stream and counts the rest as lost") {
    constexpr std::size_t mebi = 1 << 20;
    const auto both = again(captured_of(std::string(mebi, 'h'), std::string(mebi, 't'), 3 * mebi));
    CHECK(both.head == std::string(mebi / 2, 'h'));
    CHECK(both.tail == std::string(mebi / 2, 't'));
    CHECK(both.total == 3 * mebi);
    CHECK(both.lost() == 2 * mebi);
    const auto head = again(captured_of(std::string(mebi, 'h'), "t", mebi + 1));
    CHECK(head.head.size() == mebi - 1);
    CHECK(head.tail == "t");
    CHECK(head.lost() == 1);
    const auto tail = again(captured_of("h", "0" + std::string(mebi, 't'), mebi + 2));
    CHECK(tail.head == "h");
    CHECK(tail.tail == std::string(mebi - 1, 't'));
    CHECK(tail.lost() == 2);
}

TEST_CASE("output values: members of a captured stream that make no sense are taken as they can") {
    const auto read = [](const json& stream) {
        const json outcome{{"stdout", stream}};
        const json failure{{"exception", "group_stopped"}, {"outcomes", {outcome}}};
        try {
            std::rethrow_exception(cohort::exception_from_json(failure.dump()));
        } catch (const cohort::group_stopped& e) {
            return e.outcomes().at(0).out;
        }
    };
    CHECK(read("text") == captured());
    CHECK(read({{"head", 3}, {"total", -1}, {"lost", "x"}}) == captured());
    CHECK(read({{"head", "abc"}}).lost() == 0);
    CHECK(read({{"lost", 7}}).lost() == 7);
}

TEST_CASE("output values: a report is one line of JSON with the outcomes of a failure") {
    report r;
    r.elapsed = std::chrono::milliseconds(3);
    r.name = "nightly";
    r.host = "node7";
    r.time_limit = std::chrono::milliseconds(5);
    r.outcomes.resize(2);
    r.outcomes[0].index = 0;
    r.outcomes[1].index = 1;
    r.outcomes[1].out = captured_of("a\nb", "c", 1'000);
    const std::string text = to_json(r);
    CHECK(text.find('\n') == std::string::npos);
    const json read = json::parse(text);
    CHECK(read.at("success") == false);
    CHECK(read.at("elapsed") == 3'000'000);
    CHECK(read.at("name") == "nightly");
    CHECK(read.at("host") == "node7");
    CHECK(read.at("time_limit") == 5'000'000);
    const auto failure = json::parse(to_json(cohort::process_exception(
        "failed", 0, 1, std::make_shared<const std::vector<outcome>>(r.outcomes))));
    CHECK(read.at("outcomes") == failure.at("outcomes"));
    CHECK(read.at("outcomes")[1].at("stdout") ==
          json{{"head", "a\nb"}, {"tail", "c"}, {"total", 1'000}, {"lost", 996}});
    CHECK_FALSE(read.at("outcomes")[1].contains("stderr"));
    CHECK(json::parse(to_json(report())).at("success") == true);
}

TEST_CASE("output values: the attempts of a worker are in the JSON, and come back from it") {
    outcome last;
    last.index = 0;
    last.attempt = 2;
    for (int attempt = 0; attempt < 3; ++attempt) {
        outcome one;
        one.index = 0;
        one.attempt = attempt;
        one.restarted = attempt < 2;
        one.history.resize(5);  // no attempt has a history of its own
        last.history.push_back(one);
    }
    try {
        std::rethrow_exception(cohort::exception_from_json(to_json(cohort::process_exception(
            "failed", 0, 1, std::make_shared<const std::vector<outcome>>(1, last)))));
    } catch (const cohort::process_exception& e) {
        const auto& read = e.outcomes().at(0);
        CHECK(read.attempt == 2);
        CHECK_FALSE(read.restarted);
        REQUIRE(read.history.size() == 3);
        for (int attempt = 0; attempt < 3; ++attempt) {
            const auto& one = read.history[static_cast<std::size_t>(attempt)];
            CHECK(one.attempt == attempt);
            CHECK(one.restarted == (attempt < 2));
            CHECK(one.history.empty());
        }
    }
}

TEST_CASE("output values: a report that is too long loses the text of streams, but no count") {
    report r;
    outcome one;
    one.out = captured_of(std::string(16'384, 'h'), std::string(49'152, 't'), 1 << 20);
    r.outcomes.resize(1'200, one);
    const auto shorter = json::parse(to_json(r)).at("outcomes")[399].at("stdout");
    CHECK(shorter.at("head") == std::string(512, 'h'));
    CHECK(shorter.at("tail") == std::string(512, 't'));
    CHECK(shorter.at("lost") == (1 << 20) - 1024);
    r.outcomes.resize(70'000, one);
    const auto shortest = json::parse(to_json(r)).at("outcomes")[0].at("stdout");
    CHECK(shortest == json{{"total", 1 << 20}, {"lost", 1 << 20}});
    CHECK_THROWS_WITH_AS(
        cohort::to_json(cohort::group_stopped(std::make_shared<std::vector<outcome>>(65'537))),
        "to_json: the exception has more than 65536 outcomes", std::length_error);
}

}  // namespace output_values_test
