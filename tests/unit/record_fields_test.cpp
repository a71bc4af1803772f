// SPDX-License-Identifier: BSL-1.0
// The fields of a record beyond its texts: frames, codes, causes, value and time.
#include "protocol/record/error_json.hpp"
#include "protocol/record/fields.hpp"

#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace record_fields_test {

using namespace cohort;
using namespace cohort::protocol;

namespace {

std::optional<error_record> read(std::string_view text) {
    return read_error(std::as_bytes(std::span(text.data(), text.size())), text.size(), {});
}

stack_frame frame(std::uint64_t offset, std::string module = "/bin/x") {
    stack_frame made;
    made.module = std::move(module);
    made.offset = offset;
    made.build_id = "f00dcafe";
    return made;
}

stack_frame named_frame() {
    stack_frame made = frame(0x1234);
    made.function = "load(int)";
    made.file = "/src/train.cpp";
    made.line = 12;
    made.inlined = true;
    return made;
}

std::chrono::system_clock::time_point at(std::int64_t microseconds) {
    return std::chrono::system_clock::time_point(std::chrono::microseconds(microseconds));
}

error_record error_with_all(const std::string& message) {
    error_record error;
    error.type = "std::system_error";
    error.message = message;
    error.trace = "the trace\n" + message;
    error.frames = {frame(1), named_frame(), frame(UINT64_MAX, "/lib/y")};
    error.code = -2;
    error.category = "generic";
    error.worker = 3;
    error.pid = 1234;
    error.timestamp = at(1'700'000'000'123'456);
    detail::error_record_access::value(error) = std::string("\0\xFF{\"", 4);
    return error;
}

error_record full() {
    error_record error = error_with_all("outer");
    error.nested = {error_with_all("next"), error_with_all("first")};
    return error;
}

/// Becomes a value of any member.
struct whatever {
    template <class Member>
    operator Member() const;
};

template <class T, std::size_t... I>
constexpr bool has_members(std::index_sequence<I...>) {
    return requires { T{(static_cast<void>(I), whatever())...}; };
}

/// Whether an aggregate has as many members as fields.
template <class T>
constexpr bool is_described =
    std::is_aggregate_v<T>&& has_members<T>(
        std::make_index_sequence<std::tuple_size_v<decltype(fields_of<T>)>>()) &&
    !has_members<T>(std::make_index_sequence<std::tuple_size_v<decltype(fields_of<T>)> + 1>());

static_assert(is_described<stack_frame>);
static_assert(is_described<crash_record>);
static_assert(is_described<activity>);
static_assert(is_described<resource_usage>);

}  // namespace

TEST_CASE("record fields: every field is read back") {
    const auto error = read(write_error(full()));
    REQUIRE(error);
    CHECK(error->nested == full().nested);
    CHECK(detail::error_record_access::value(*error) == std::string("\0\xFF{\"", 4));
    CHECK(*error == full());
}

TEST_CASE(
    "record fields: a frame has short names, the newest comes first, and defaults are left out") {
    error_record error;
    error.message = "m";
    error.frames = {frame(7), named_frame()};
    CHECK(write_error(error) ==
          R"-({"frames":[{"b":"f00dcafe","f":"load(int)","i":true,"l":12,"m":"/bin/x","o":4660,)-"
          R"-("s":"/src/train.cpp"},{"b":"f00dcafe","m":"/bin/x","o":7}],"message":"m"})-");
}

TEST_CASE("record fields: the newest 256 frames and the next 16 causes are kept") {
    error_record error;
    error.message = "m";
    for (std::uint64_t i = 0; i < 300; ++i)
        error.frames.push_back(frame(i));
    for (int i = 0; i < 20; ++i)
        error.nested.push_back(error_with_all(std::to_string(i)));
    const auto kept = read(write_error(error));
    REQUIRE(kept);
    REQUIRE(kept->frames.size() == frame_limit);
    CHECK(kept->frames.front().offset == 44);
    CHECK(kept->frames.back().offset == 299);
    REQUIRE(kept->nested.size() == nested_limit);
    CHECK(kept->nested.front().message == "0");
    // A foreign file is held to the same.
    std::string frames, nested;
    for (int i = 0; i < 300; ++i) {
        frames += (i ? ",{\"o\":" : "{\"o\":") + std::to_string(i + 1) + "}";
        nested += (i ? ",{\"message\":\"" : "{\"message\":\"") + std::to_string(i) + "\"}";
    }
    const auto foreign =
        read(R"({"message":"m","frames":[)" + frames + R"(],"nested":[)" + nested + "]}");
    REQUIRE(foreign);
    REQUIRE(foreign->frames.size() == frame_limit);
    CHECK(foreign->frames.front().offset == 256);
    CHECK(foreign->frames.back().offset == 1);
    REQUIRE(foreign->nested.size() == nested_limit);
    CHECK(foreign->nested.back().trace == "15");
}

TEST_CASE("record fields: a nested entry has no nested entries of its own") {
    error_record error = full();
    error.nested[0].nested = {error_with_all("deeper")};
    CHECK(read(write_error(error)) == full());
    const auto foreign =
        read(R"({"message":"m","nested":[{"message":"n","nested":[{"message":"o"}]}]})");
    CHECK(foreign->nested.at(0).nested.empty());
}

TEST_CASE("record fields: members of another type or out of range are ignored") {
    const auto odd = read(
        R"({"message":"m","frames":[7,null,{"m":5,"b":"xyz","o":-1,"l":-4,"i":1,"f":["f"]},)"
        R"({"o":1.5,"l":99999999999,"b":"abc"}],"code":"2","category":7,"worker":-7,"pid":4294967296,)"
        R"("timestamp":{},"value":"0g","nested":[1,"x",{"message":4,"code":1e3}]})");
    REQUIRE(odd);
    error_record expected;
    expected.message = expected.trace = "m";
    CHECK(*odd == expected);  // what says nothing is no frame and no cause
    for (const std::string text : {R"({"message":"m","frames":{"o":1},"nested":7})",
                                   R"({"message":"m","frames":null,"value":"123"})"}) {
        CHECK(read(text) == expected);
    }
}

TEST_CASE("record fields: a time is a number of seconds or a text of it, from 1970 to 2106") {
    const auto time_of = [](const std::string& value) {
        return read(R"({"message":"m","timestamp":)" + value + "}")->timestamp;
    };
    CHECK(time_of("1700000000") == at(1'700'000'000'000'000));
    CHECK(time_of("1700000000.25") == at(1'700'000'000'250'000));
    CHECK(time_of("\"1700000000\"") == at(1'700'000'000'000'000));
    CHECK(time_of("\"1700000000.5\"") == at(1'700'000'000'500'000));
    CHECK(time_of("0") == at(0));
    CHECK(time_of("4294967295.999999") == at(4'294'967'295'999'999));
    for (const std::string odd : {"-1", "4294967296", "1e300", "\"\"", "\"now\"", "\"1 \"",
                                  "\"nan\"", "\"inf\"", "null", "[]", "true"}) {
        CAPTURE(odd);
        CHECK_FALSE(time_of(odd).has_value());
    }
}

TEST_CASE("record fields: a time is the same after any number of round trips") {
    for (std::int64_t microseconds = 1; microseconds < 4'294'967'295'000'000;
         microseconds = microseconds * 3 + 1) {
        error_record error;
        error.message = error.trace = "m";
        error.timestamp = at(microseconds);
        CHECK(read(write_error(error)) == error);
    }
}

TEST_CASE("record fields: torch's time stamp is understood in both shapes") {
    const std::string inner =
        R"({"message":{"message":"E: m","errorCode":3,"extraInfo":{"py_callstack":"E: m",)";
    CHECK(read(inner + R"("timestamp":"1700000000"}}})")->timestamp == at(1'700'000'000'000'000));
    CHECK(read(inner + R"("timestamp":1700000000}}})")->timestamp == at(1'700'000'000'000'000));
    CHECK_FALSE(read(inner + R"("timestamp":[]}}})")->timestamp.has_value());
    CHECK(read(R"({"message":"m","timestamp":"12"})")->timestamp == at(12'000'000));
}

TEST_CASE("record fields: a value beyond 64 KiB is left out") {
    error_record error;
    error.message = error.trace = "m";
    detail::error_record_access::value(error) = std::string(value_limit, '\x7F');
    CHECK(read(write_error(error)) == error);
    detail::error_record_access::value(error) += '!';
    CHECK(write_error(error).find("value") == std::string::npos);
    const auto foreign =
        read(R"({"message":"m","value":")" + std::string(2 * value_limit + 2, '0') + "\"}");
    CHECK(detail::error_record_access::value(*foreign).empty());
}

TEST_CASE("record fields: names and paths are cut at 4096 bytes, between characters") {
    error_record error;
    error.message = "m";
    std::string name = "x";
    while (name.size() < 5000)
        name += "\u20ac";
    error.frames = {frame(1, name)};
    const auto kept = read(write_error(error));
    REQUIRE(kept);
    const std::string& module = kept->frames.at(0).module;
    CHECK(module.size() <= base::name_limit);
    CHECK(module.size() > base::name_limit - 4);
    CHECK(name.starts_with(module));
    CHECK(base::valid_utf8(module) == module);
}

TEST_CASE(
    "record fields: what must be short loses value, frames of causes, causes, frames, then text") {
    const auto kept_within = [](const error_record& error, std::size_t limit) {
        const std::string json = write_error(error, limit);
        CHECK(json.size() <= limit);
        const auto kept = read(json);
        REQUIRE(kept);
        return *kept;
    };
    error_record error = full();
    detail::error_record_access::value(error) = std::string(3000, 'v');
    const auto length = [&](left_out without) {
        return base::line_of(json_of(error, base::text_limit, without)).size();
    };
    auto kept = kept_within(error, length(left_out::nothing) - 1);
    CHECK(detail::error_record_access::value(kept).empty());
    CHECK(kept.nested.at(1).frames == full().frames);
    kept = kept_within(error, length(left_out::values) - 1);
    CHECK(kept.nested.at(1).frames.empty());
    CHECK(kept.nested.at(1).message == "first");
    kept = kept_within(error, length(left_out::nested_frames) - 1);
    CHECK(kept.nested.empty());
    CHECK(kept.frames == error.frames);
    kept = kept_within(error, length(left_out::nested) - 1);
    CHECK(kept.frames.empty());
    CHECK(kept.message == "outer");
    CHECK(kept.timestamp == error.timestamp);

    error.message = std::string(3 << 20, '\x01') + "end";
    kept = kept_within(error, short_record_limit);
    CHECK(kept.message.ends_with("end"));
    // Where there is room, long texts give way to the frames.
    kept = kept_within(error, record_limit);
    CHECK(kept.frames == error.frames);
    CHECK(kept.nested.size() == 2);
    CHECK(kept.message.ends_with("end"));
}

}  // namespace record_fields_test
