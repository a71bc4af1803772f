// SPDX-License-Identifier: BSL-1.0
// The smaller messages between the origin and an agent.
#include "hosts/values/messages.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <future>
#include <string>
#include <system_error>
#include <vector>

namespace hosts_values_messages_test {

using namespace cohort;
using namespace cohort::multihost;
using namespace std::chrono_literals;

namespace {

template <class Message>
Message read_back(const Message& message, int workers = 4) {
    auto read = read_message<Message>(write_message(message), workers);
    REQUIRE_MESSAGE(read, read.problem);
    return std::move(*read);
}

template <class Message>
std::string problem_of(const Message& message, int workers = 4) {
    const auto read = read_message<Message>(write_message(message), workers);
    CHECK_FALSE(read);
    return read.problem;
}

hello some_hello() {
    return {hello::current_version, "f00d", "cafe", "node03", {"cgroup", "pidfd"}, 77};
}

}  // namespace

TEST_CASE("hosts values messages: each comes back as it was") {
    CHECK(read_back(some_hello()) == some_hello());
    const welcome answer{{{"A", "b"}, {"C", std::nullopt}}, "/tmp", 10s};
    CHECK(read_back(answer) == answer);
    CHECK(read_back(welcome()) == welcome());
    const started_workers started{{1, 2, 3, 4}};
    CHECK(read_back(started) == started);
    const used_resources used{{{3, 5ns, 6, 7, 'S'}, {0, 0ns, 0, 0, '?'}}, 24};
    CHECK(read_back(used) == used);
    const ladder_spans stop{2s, 3ns};
    CHECK(read_back(stop) == stop);
    CHECK(read_back(failed_worker{3, 9s}) == failed_worker{3, 9s});
    CHECK(read_back(begun_worker{3, 77}) == begun_worker{3, 77});
    CHECK(read_back(signal_request{2, SIGTERM}) == signal_request{2, SIGTERM});
    CHECK(read_back(signal_request{std::nullopt, 64}) == signal_request{std::nullopt, 64});
    for (const auto& credit : {stream_credit{std::nullopt, stream::out, ~std::uint64_t{0}},
                               stream_credit{2, stream::err, 1}})
        CHECK(read_back(credit) == credit);
    CHECK(read_back(input_answer{1, true}) == input_answer{1, true});
    CHECK(read_back(end_order{SIGTERM}) == end_order{SIGTERM});
}

TEST_CASE("hosts values messages: a start that failed keeps its code, text, worker and stage") {
    for (const auto* const category : {&std::generic_category(), &std::system_category()}) {
        const detail::start_failure failure{{ENOENT, *category}, "exec(\"x\")", 3, "exec"};
        const auto read = read_back(failure);
        CHECK(read.code == failure.code);
        CHECK(read.text == failure.text);
        CHECK(read.index == 3);
        CHECK(read.stage == "exec");
    }
    CHECK(read_back(detail::start_failure{}).index == -1);
    const detail::start_failure other{std::make_error_code(std::future_errc::no_state), "", 0, ""};
    CHECK(read_back(other).code == std::error_code(EIO, std::system_category()));
    CHECK(problem_of(detail::start_failure{{}, "", 4, ""}) ==
          "a message can't be read: 4 is not within -1 and 3");
}

TEST_CASE("hosts values messages: bytes of a stream stand behind their head as they are") {
    const stream_head head{3, 1, stream::err, false, 1, 1'000'000'000'000};
    const std::vector<std::byte> data(1'000, std::byte{0xFF});
    const auto written = write_data(head, data);
    CHECK(written.size() < 1'030);
    const auto read = read_data<stream_head>(written, 4);
    REQUIRE_MESSAGE(read.head, read.head.problem);
    CHECK(read.head.value == head);
    CHECK(std::vector(read.data.begin(), read.data.end()) == data);
    const auto end = read_data<input_head>(write_data(input_head{0, true}, {}), 1);
    CHECK(end.head.value == input_head{0, true});
    CHECK(end.data.empty());
    CHECK_FALSE(read_data<stream_head>(written, 3).head);
    CHECK_FALSE(read_data<stream_head>({}, 4).head);
}

TEST_CASE("hosts values messages: of a hello of another version only that is read") {
    auto other = some_hello();
    other.version = 2;
    hello expected;
    expected.version = 2;
    CHECK(read_back(other) == expected);
}

TEST_CASE("hosts values messages: what can't be true is refused with a sentence") {
    CHECK(problem_of(started_workers{{1, 2, 3}}) ==
          "a message can't be read: 3 process IDs of 4 workers");
    CHECK(problem_of(started_workers{{1, 2, 3, 4, 5}}) ==
          "a message can't be read: a list of 5 is longer than 4");
    CHECK(problem_of(signal_request{4, 1}) == "a message can't be read: 4 is not within 0 and 3");
    CHECK(problem_of(end_order{0}) == "a message can't be read: 0 is not within 1 and 64");
    CHECK(problem_of(signal_request{0, 65}) ==
          "a message can't be read: 65 is not within 1 and 64");
    CHECK(problem_of(signal_request{0, 1}, 0) == "a message can't be read: there are no workers");
    CHECK(problem_of(ladder_spans{-1ns, 0ns}).find("-1 is not within 0 and") !=
          std::string::npos);
    CHECK(problem_of(welcome{{{"", "b"}}, std::nullopt, 0s}) ==
          "a message can't be read: a variable has no name, or one with a '=' in it");
}

}  // namespace hosts_values_messages_test
