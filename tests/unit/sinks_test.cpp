// SPDX-License-Identifier: BSL-1.0
#include <cohort/command.hpp>
#include <cohort/detail/sink_access.hpp>
#include <cohort/options.hpp>
#include <cohort/sinks.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace sinks_test {

using cohort::command;
using cohort::options;
using cohort::detail::command_access;
using cohort::detail::options_access;
using cohort::detail::sink_access;
using namespace std::string_literals;
using sinks = std::vector<cohort::detail::sink>;

namespace {

const cohort::detail::placement& of(const options& o) { return options_access::settings(o).where; }
const cohort::detail::placement& of(const command& c) { return command_access::program(c).where; }

template <class Data, class Sink>
Data data(const Sink& sink) {
    return std::get<Data>(sink_access::data(sink));
}
auto file_data(const cohort::file& f) { return data<cohort::detail::file_sink>(f); }
auto console_data(const cohort::console& c) { return data<cohort::detail::console_sink>(c); }

/// What std::invalid_argument says; empty if none is thrown.
template <class Call>
std::string refusal(Call call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

/// Whether `call` is refused with a sentence about this setter.
template <class Call>
bool refuses(std::string_view setter, Call call) {
    return refusal(call).starts_with("cohort: " + std::string(setter) + ": ");
}

}  // namespace

TEST_CASE("sinks: all that the guide shows is taken") {
    using namespace cohort;
    constexpr std::int64_t mebi = 1 << 20;
    const std::string text = "more\n";
    options o(8);
    o.stdout_to("logs/{index:03}.log")
        .stdout_to(file("logs/{index}/out").append())
        .stdout_to(file("x").truncate().rotate(64 * mebi, 5))
        .stderr_to(merge())
        .stdout_to(capture().head(16'384).tail(49'152))
        .stdout_to(lines().buffer(1 << 20).when_full(when_full::block).longest_line(65'536))
        .stdout_to(chunks())
        .stdout_to(chunks().buffer(4096).when_full(when_full::drop_oldest))
        .stdout_to(console().tag("[{index}]: ").only(0, 2))
        .stdout_to(console().only([](int index) { return index % 2 == 0; }))
        .output_to(file("{group}.log").tagged().timestamps(), capture())
        .stdin_from(bytes(text))
        .stdin_from(feed())
        .stdin_from(inherit())
        .stdout_to(discard())
        .logs(logs("logs").run_id("job42"));
    command("cat")
        .stdin_from(std::filesystem::path("in"))
        .stdout_to(std::filesystem::path("out"), console(), lines())
        .stderr_to("err"s)
        .output_to("both", capture())
        .stdin_from(bytes("literal"))
        .stdin_from(feed())
        .stdin_from(inherit());
    CHECK(of(o).sinks.at(1) == sinks{detail::discard_sink()});
}

TEST_CASE("sinks: the defaults are those of the guide") {
    const auto file = file_data(cohort::file("a"));
    CHECK(file.pattern == "a");
    CHECK_FALSE(file.appends);
    CHECK(file.rotate_at == 0);
    CHECK_FALSE(file.tag);
    CHECK_FALSE(file.timestamps);
    CHECK(file.full == cohort::when_full::block);
    const auto capture = data<cohort::detail::capture_sink>(cohort::capture());
    CHECK(capture.head == 16'384);
    CHECK(capture.tail == 49'152);
    CHECK_FALSE(capture.at_most);
    const auto lines = data<cohort::detail::lines_sink>(cohort::lines());
    CHECK(lines.buffer.bytes == 1 << 20);
    CHECK_FALSE(lines.buffer.is_chosen);
    CHECK(lines.longest == 65'536);
    CHECK(lines.full == cohort::when_full::drop_oldest);
    const auto chunks = data<cohort::detail::chunks_sink>(cohort::chunks());
    CHECK(chunks.buffer.bytes == 1 << 20);
    CHECK_FALSE(chunks.buffer.is_chosen);
    CHECK(chunks.full == cohort::when_full::drop_oldest);
    const auto console = console_data(cohort::console());
    CHECK(console.tag == "[{index}]: ");
    CHECK_FALSE(console.only);
    CHECK(console.filter == nullptr);
    CHECK(console.full == cohort::when_full::block);
}

TEST_CASE("sinks: every setter is kept") {
    using cohort::when_full;
    const auto file = file_data(cohort::file(std::filesystem::path("/a/{host}"))
                                    .append()
                                    .rotate(std::uint64_t{1} << 40, 2)
                                    .tagged("{index:>3}|")
                                    .timestamps()
                                    .when_full(when_full::drop_oldest));
    CHECK(file.pattern == "/a/{host}");
    CHECK(file.appends);
    CHECK(file.rotate_at == std::uint64_t{1} << 40);
    CHECK(file.kept == 2);
    CHECK(file.tag == "{index:>3}|");
    CHECK(file.timestamps);
    CHECK(file.full == when_full::drop_oldest);
    CHECK_FALSE(file_data(cohort::file("a").append().truncate()).appends);
    CHECK(file_data(cohort::file("a").rotate(1)).kept == 5);
    CHECK(file_data(cohort::file("a").tagged()).tag == "[{index}]: ");
    const auto capture =
        data<cohort::detail::capture_sink>(cohort::capture().head(1).at_most(2L).tail(0));
    CHECK(capture.head == 1);
    CHECK(capture.at_most == 2);
    CHECK(capture.tail == 0);
    const auto lines = data<cohort::detail::lines_sink>(
        cohort::lines().longest_line(8).buffer(9L).when_full(when_full::block));
    CHECK(lines.longest == 8);
    CHECK(lines.buffer.bytes == 9);
    CHECK(lines.buffer.is_chosen);
    CHECK(lines.full == when_full::block);
    const auto console =
        console_data(cohort::console().tag("").when_full(when_full::drop_oldest).only(2U, 0L));
    CHECK(console.tag.empty());
    CHECK(console.full == when_full::drop_oldest);
    CHECK(console.only == std::set<int>{0, 2});
}

TEST_CASE("sinks: the last only() counts, and a filter may change its state") {
    const auto calls = [n = 0](int) mutable { return ++n > 1; };
    const auto filtered = console_data(cohort::console().only(1).only(calls));
    CHECK_FALSE(filtered.only);
    REQUIRE(filtered.filter);
    CHECK_FALSE((*filtered.filter)(0));
    CHECK((*filtered.filter)(0));
    const auto listed = console_data(cohort::console().only(calls).only(3));
    CHECK(listed.filter == nullptr);
    CHECK(listed.only == std::set<int>{3});
}

TEST_CASE("sinks: values compare, and copies share a filter") {
    CHECK(cohort::file("a").append() == cohort::file("a").append());
    CHECK(cohort::file("a") != cohort::file("b"));
    CHECK(cohort::capture() == cohort::capture().head(16'384));
    CHECK(cohort::capture() != cohort::capture().tail(1));
    CHECK(cohort::lines() != cohort::lines().when_full(cohort::when_full::block));
    CHECK(cohort::chunks() != cohort::chunks().buffer(1));
    CHECK(cohort::inherit() == cohort::inherit());
    CHECK(cohort::discard() == cohort::discard());
    CHECK(cohort::merge() == cohort::merge());
    CHECK(cohort::feed() == cohort::feed());
    CHECK(cohort::bytes("a") == cohort::bytes(std::string("a")));
    CHECK(cohort::bytes("a") != cohort::bytes(std::string_view("b")));
    CHECK(cohort::logs("a") != cohort::logs("a").run_id("b"));
    const auto all = [](int) { return true; };
    const auto console = cohort::console().only(all);
    CHECK(console == cohort::console(console));
    CHECK(console != cohort::console().only(all));
    CHECK(options().stdout_to(console) == options().stdout_to(console));
}

TEST_CASE("sinks: GCC 12 destroys aggregates twice in a co_await, so none is one") {
    CHECK_FALSE(std::is_aggregate_v<cohort::inherit>);
    CHECK_FALSE(std::is_aggregate_v<cohort::discard>);
    CHECK_FALSE(std::is_aggregate_v<cohort::merge>);
    CHECK_FALSE(std::is_aggregate_v<cohort::file>);
    CHECK_FALSE(std::is_aggregate_v<cohort::capture>);
    CHECK_FALSE(std::is_aggregate_v<cohort::lines>);
    CHECK_FALSE(std::is_aggregate_v<cohort::chunks>);
    CHECK_FALSE(std::is_aggregate_v<cohort::console>);
    CHECK_FALSE(std::is_aggregate_v<cohort::bytes>);
    CHECK_FALSE(std::is_aggregate_v<cohort::feed>);
    CHECK_FALSE(std::is_aggregate_v<cohort::logs>);
}

TEST_CASE("sinks: a bad path or pattern is refused by the setter that got it") {
    for (const auto& path : {""s, "a\0b"s, "{foo}"s, "{index"s, "{index:s}"s, "a}"s, "{}"s}) {
        CAPTURE(path);
        CHECK(refuses("file", [&] { cohort::file{path}; }));
        CHECK(refuses("stdout_to", [&] { options().stdout_to(path); }));
        CHECK(refuses("stderr_to", [&] { command("x").stderr_to(path); }));
        CHECK(refuses("output_to", [&] { options().output_to(cohort::capture(), path); }));
    }
    CHECK(refusal([] { options().stdout_to("a\0b"s); }) ==
          "cohort: stdout_to: the path \"a\" has a NUL at position 1");
    CHECK(refusal([] { cohort::file(""); }) == "cohort: file: the path is empty");
    CHECK(refuses("stdin_from", [] { options().stdin_from(""); }));
    CHECK(refuses("stdin_from", [] { options().stdin_from("a\0b"s); }));
    CHECK(refusal([] { options().stdin_from("{no pattern}"); }).empty());
    CHECK(refusal([] { options().stdout_to("{{x}}"); }).empty());
    CHECK(refuses("logs", [] { cohort::logs(""); }));
    CHECK(refuses("logs", [] { cohort::logs("a\0b"s); }));
}

TEST_CASE("sinks: a tag is a pattern without a newline") {
    CHECK(refusal([] { cohort::file("a").tagged("a\nb"); }) ==
          "cohort: tagged: the tag has a newline");
    CHECK(refusal([] { cohort::console().tag("a\n"); }) == "cohort: tag: the tag has a newline");
    CHECK(refuses("tagged", [] { cohort::file("a").tagged("{x}"); }));
    CHECK(refuses("tag", [] { cohort::console().tag("{"); }));
}

TEST_CASE("sinks: a size that is too small, too large or negative is refused") {
    constexpr std::int64_t gibi = 1 << 30;
    CHECK(refusal([] { cohort::file("a").rotate(0); }) == "cohort: rotate: a file of 0 bytes");
    CHECK(refusal([] { cohort::file("a").rotate(-1); }) == "cohort: rotate: negative");
    CHECK(refuses("rotate", [] { cohort::file("a").rotate(1, 0); }));
    CHECK(refuses("rotate", [] { cohort::file("a").rotate(1, -1); }));
    CHECK(refusal([] { cohort::capture().head(-1); }) == "cohort: head: negative");
    CHECK(refusal([] { cohort::capture().tail(-1); }) == "cohort: tail: negative");
    CHECK(refusal([] { cohort::capture().tail(0).head(gibi); }).empty());
    CHECK(refusal([] { cohort::capture().head(gibi / 2).tail(gibi / 2); }).empty());
    CHECK(refuses("head", [] { cohort::capture().tail(1).head(gibi); }));
    CHECK(refuses("tail", [] { cohort::capture().head(gibi / 2).tail(gibi / 2 + 1); }));
    CHECK(refuses("tail", [] { cohort::capture().tail(std::numeric_limits<uint64_t>::max()); }));
    CHECK(refuses("buffer", [] { cohort::lines().buffer(0); }));
    CHECK(refuses("buffer", [] { cohort::lines().buffer(-1); }));
    CHECK(refuses("buffer", [] { cohort::lines().buffer(65'535); }));
    CHECK(refusal([] { cohort::lines().buffer(65'536); }).empty());
    CHECK(refuses("longest_line", [] { cohort::lines().longest_line(0); }));
    CHECK(refuses("longest_line", [] { cohort::lines().longest_line(-1); }));
    CHECK(refuses("longest_line", [] { cohort::lines().longest_line((1 << 20) + 1); }));
    CHECK(refuses("at_most", [] { cohort::capture().at_most(-1); }));
    CHECK(cohort::capture() != cohort::capture().at_most(0));
    CHECK(refuses("buffer", [] { cohort::chunks().buffer(0); }));
    CHECK(refuses("buffer", [] { cohort::chunks().buffer(-1); }));
}

TEST_CASE("sinks: a setter that refuses changes nothing") {
    cohort::capture capture;
    CHECK_THROWS_AS(capture.head(1 << 30), std::invalid_argument);
    CHECK(capture == cohort::capture());
    auto o = options().stdout_to("a");
    const auto before = o;
    CHECK_THROWS_AS(o.output_to(cohort::merge()), std::invalid_argument);
    CHECK_THROWS_AS(o.stdout_to(cohort::capture(), cohort::capture()), std::invalid_argument);
    CHECK(o == before);
}

TEST_CASE("sinks: only() takes indices of workers, and functions that can be called") {
    CHECK(refuses("only", [] { cohort::console().only(0, -1); }));
    CHECK(refuses("only", [] { cohort::console().only(std::int64_t{1} << 40); }));
    const std::function<bool(int)> empty;
    CHECK(refuses("only", [&] { cohort::console().only(empty); }));
    CHECK(refuses("only", [] { cohort::console().only(static_cast<bool (*)(int)>(nullptr)); }));
}

TEST_CASE("sinks: a run id is the name of one directory") {
    for (const auto& id : {""s, "."s, ".."s, "a/b"s, "a\0b"s}) {
        CAPTURE(id);
        CHECK(refuses("run_id", [&] { cohort::logs("logs").run_id(id); }));
    }
    CHECK(refusal([] { cohort::logs("logs").run_id("..."); }).empty());
}

TEST_CASE("sinks: what cannot stand beside another sink of a stream is refused") {
    using namespace cohort;
    CHECK(refusal([] { options().stdout_to(inherit(), capture()); }) ==
          "cohort: stdout_to: inherit() is possible only as the one sink");
    CHECK(refuses("stderr_to", [] { options().stderr_to("a", discard()); }));
    CHECK(refuses("stderr_to", [] { options().stderr_to(merge(), capture()); }));
    CHECK(refuses("output_to", [] { command("x").output_to(capture(), inherit()); }));
    CHECK(refuses("stdout_to", [] { options().stdout_to(merge()); }));
    CHECK(refuses("output_to", [] { options().output_to(merge()); }));
    CHECK(refuses("output_to", [] { options().output_to(capture(), merge()); }));
    CHECK(refuses("stdout_to", [] { options().stdout_to(lines(), lines()); }));
    CHECK(refuses("stdout_to", [] { options().stdout_to(lines(), chunks()); }));
    CHECK(refuses("stderr_to", [] { options().stderr_to(chunks(), chunks()); }));
    CHECK(refuses("stdout_to", [] { options().stdout_to(capture(), "a", capture()); }));
    CHECK(refusal([] { options().stdout_to(lines(), capture(), console(), "a", "b"); }).empty());
    CHECK(refusal([] { options().stdout_to(lines()).stderr_to(chunks()); }).empty());
}

TEST_CASE("sinks: a call replaces what an earlier call set for that stream alone") {
    const cohort::detail::sink capture = cohort::detail::capture_sink();
    const cohort::detail::sink merge = cohort::detail::merge_sink();
    const cohort::detail::sink file = cohort::detail::file_at("test", "a");
    const auto o = options().output_to("a", cohort::capture()).stderr_to(cohort::merge());
    CHECK(of(o).sinks.at(1) == sinks{file, capture});
    CHECK(of(o).sinks.at(2) == sinks{merge});
    const auto c = command("x").stderr_to(cohort::merge()).stdout_to("b").output_to("a");
    CHECK(of(c).sinks.at(1) == sinks{file});
    CHECK(of(c).sinks.at(2) == sinks{file});
}

TEST_CASE("sinks: the last source of standard input counts") {
    namespace detail = cohort::detail;
    const auto o = options().stdin_from("a").stdin_from(cohort::bytes("b\0c"s));
    REQUIRE(of(o).input);
    CHECK(*std::get<detail::bytes_input>(*of(o).input).text == "b\0c"s);
    CHECK(of(command("x").stdin_from(cohort::feed())).input == detail::input(detail::feed_input()));
    CHECK(of(options().stdin_from(cohort::inherit())).input ==
          detail::input(detail::inherit_input()));
    CHECK_FALSE(of(options()).input);
}

}  // namespace sinks_test
