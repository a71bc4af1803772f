// SPDX-License-Identifier: BSL-1.0
// A file that a worker made to be slow to read: its size alone bounds the time.
#include "base/text/members.hpp"
#include "protocol/record/error_json.hpp"
#include "protocol/record/traceback.hpp"
#include "sanitizers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include <ctime>

namespace hostile_record_test {

using namespace cohort;
using namespace cohort::protocol;
using namespace std::chrono_literals;

namespace {

std::optional<error_record> read(const std::string& text) {
    return read_error(std::as_bytes(std::span(text)), text.size(), {});
}

std::string repeated(std::string_view part, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
        text += part;
    return text;
}

/// What this thread has used of the processor, however busy the machine is.
std::chrono::nanoseconds time_used() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// The shortest of three, in which the machine disturbed it least.
template <class Work>
std::chrono::nanoseconds shortest_time(Work work) {
    auto shortest = std::chrono::nanoseconds::max();
    for (int i = 0; i < 3; ++i) {
        const auto before = time_used();
        work();
        shortest = std::min(shortest, time_used() - before);
    }
    return shortest;
}

}  // namespace

TEST_CASE("hostile record: searching a cause's trace in the message takes linear time") {
    // std::string::find compares a million times 32 KiB here: 0.4 s.
    const auto error =
        read(R"({"message":")" + std::string(base::text_limit - 1, 'a') +
             R"(","nested":[{"worker":0,"trace":")" + std::string(32'700, 'a') + R"(b"}]})");
    REQUIRE(error);
    REQUIRE(error->nested.size() == 1);
    CHECK(shortest_time([&] { (void)traceback_of(*error); }) < 100ms);
}

TEST_CASE("hostile record: JSON of more values than an error has is taken for text") {
    const auto with_values = [](std::size_t count) {
        return R"({"message":"m","x":[)" + repeated("1,", count) + "1]}";
    };
    CHECK(read(with_values(base::most_values / 2)).value().message == "m");
    const std::string many = with_values(base::most_values);
    CHECK(read(many).value().message == many);
    const std::string arrays =
        R"({"message":"m","x":[)" + repeated("[],", base::most_values) + "1]}";
    CHECK(read(arrays).value().message == arrays);
    // What stands in strings is no value.
    const std::string commas(2 * base::most_values, ',');
    CHECK(read(R"({"message":")" + commas + R"("})").value().message == commas);
}

TEST_CASE("hostile record: reading a million bytes takes milliseconds whatever they are") {
    constexpr std::size_t size = std::size_t{1} << 20;
    // Of the CPU's time, which an emulator and a sanitizer multiply. What grew with the square of
    // the size would take minutes.
    constexpr auto bound = cohort::test::under_asan || cohort::test::under_tsan ? 20s : 4s;
    const auto object = [](const std::string& value) {
        return R"({"message":"m","x":)" + value + "}";
    };
    std::string long_keys = R"({"message":"m")";
    for (int i = 0; i < 1000; ++i)
        long_keys += ",\"" + std::string(1000, 'k') + std::to_string(i) + "\":0";
    for (const std::string& text :
         {object("[" + repeated("1,", size / 2) + "1]"), object(std::string(size, '1')),
          object("0." + std::string(size, '1')), object("[" + repeated("[],", size / 3) + "1]"),
          object("[" + repeated(repeated("[", 50) + repeated("]", 50) + ",", size / 101) + "1]"),
          object("[" + repeated("{},", size / 3) + "1]"), std::string(size, '['), long_keys + "}",
          std::string(size, '"'), std::string(size, '\xFF'), std::string(size, '\0')}) {
        CAPTURE(text.substr(0, 40));
        CHECK(shortest_time([&] { (void)read(text); }) < bound);
    }
}

}  // namespace hostile_record_test
