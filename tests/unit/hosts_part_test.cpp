// SPDX-License-Identifier: BSL-1.0
// The life of a group's part on one host.
#include "hosts_part_support.hpp"
#include "sanitizers.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hosts_part_test {

using namespace hosts_link_test;

namespace {

/// Feeds an event. @return the result: "send_stop -> stopping"
std::string take(remote_part& part, const part_event& e, time_point now = part_zero) {
    std::string text;
    for (const auto& a : part.on(e, now)) {
        text += to_string(a.what);
        text += a.what == part_does::report_ended ? " " + std::to_string(a.worker) + " " : " ";
    }
    return text + "-> " + to_string(part.current());
}

part_event ended(std::size_t worker) { return {part_hears::ended, worker}; }
part_event stop(duration grace, duration kill = 10s) {
    return {part_hears::stop, 0, {grace, kill}};
}

/// A part of two workers after some events.
remote_part after(const std::vector<part_event>& script) {
    remote_part part(2, part_timeout);
    for (const auto& e : script)
        part.on(e, part_zero);
    return part;
}

const std::vector<std::vector<part_event>> ways_to_live{
    {},
    {{part_hears::start}},
    {{part_hears::start}, {part_hears::started}},
    {{part_hears::start}, {part_hears::started}, {part_hears::open_gate}},
    {{part_hears::start}, {part_hears::started}, {part_hears::open_gate}, ended(1)},
    {{part_hears::start}, {part_hears::started}, {part_hears::open_gate}, stop(30s)},
    {{part_hears::start}, stop(30s)},
};

}  // namespace

TEST_CASE("hosts part: a life without failures") {
    remote_part part(2, part_timeout);
    CHECK(take(part, {part_hears::start}) == "send_start -> starting");
    CHECK(take(part, {part_hears::started}) == "report_started -> gated");
    CHECK(take(part, {part_hears::open_gate}) == "send_gate -> running");
    CHECK(take(part, ended(1)) == "report_ended 1 -> running");
    CHECK(take(part, ended(0)) == "report_ended 0 -> running");
    CHECK(take(part, {part_hears::reported}) == "send_leave close -> reported");
    CHECK(take(part, {part_hears::cut}) == "-> reported");
    CHECK_FALSE(part.loss());
}

TEST_CASE("hosts part: a start that fails is the end") {
    remote_part part(2, part_timeout);
    take(part, {part_hears::start});
    CHECK(take(part, {part_hears::not_started}) ==
          "report_not_started send_leave close -> reported");
}

TEST_CASE("hosts part: an agent whose workers have ended must report that in time") {
    remote_part part(1, part_timeout, 2s);
    take(part, {part_hears::start});
    take(part, {part_hears::started});
    take(part, {part_hears::open_gate});
    CHECK_FALSE(part.deadline());
    take(part, ended(0));
    REQUIRE(part.deadline());
    part.on({part_hears::deadline}, *part.deadline() - 1ns);
    CHECK_FALSE(part.is_over());
    part.on({part_hears::deadline}, *part.deadline());
    CHECK(part.loss() == part_loss{part_loss::kind::overdue});
}

TEST_CASE("hosts part: a stop works while it starts, whatever crosses it") {
    remote_part part(2, part_timeout);
    take(part, {part_hears::start});
    CHECK(take(part, stop(30s)) == "send_stop -> stopping");
    CHECK(part.deadline() == part_zero + 50s);
    SUBCASE("the start has failed") {
        CHECK(take(part, {part_hears::not_started}) ==
              "report_not_started send_leave close -> reported");
    }
    SUBCASE("the start is over") {
        CHECK(take(part, {part_hears::started}) == "report_started -> stopping");
        CHECK(take(part, {part_hears::open_gate}) == "-> stopping");
        CHECK(take(part, ended(0)) == "report_ended 0 -> stopping");
        CHECK(take(part, ended(1)) == "report_ended 1 -> stopping");
        CHECK(take(part, {part_hears::reported}) == "send_leave close -> reported");
    }
    CHECK_FALSE(part.deadline());
}

TEST_CASE("hosts part: a part that was never asked to start has nothing to stop") {
    remote_part part(2, part_timeout);
    CHECK(take(part, stop(30s)) == "close -> reported");
    CHECK(take(part, {part_hears::start}) == "-> reported");
}

TEST_CASE("hosts part: another stop is sent if it is shorter, and never moves the deadline back") {
    auto part = after(ways_to_live[3]);
    CHECK(take(part, stop(30s), part_zero) == "send_stop -> stopping");
    CHECK(take(part, stop(30s), part_zero + 5s) == "-> stopping");
    CHECK(take(part, stop(60s, 20s), part_zero + 5s) == "-> stopping");
    CHECK(part.deadline() == part_zero + 50s);
    CHECK(take(part, stop(29s), part_zero + 20s) == "send_stop -> stopping");
    CHECK(part.deadline() == part_zero + 50s);
    CHECK(take(part, stop(1h, 0s), part_zero + 1s) == "send_stop -> stopping");
    CHECK(part.spans() == ladder_spans{29s, 0s});
    CHECK(part.deadline() == part_zero + 40s);
}

TEST_CASE("hosts part: a stop that takes longer than the agent may take is a loss") {
    auto part = after(ways_to_live[3]);
    take(part, stop(30s));
    CHECK(take(part, {part_hears::deadline}, part_zero + 49s) == "-> stopping");
    CHECK(take(part, {part_hears::deadline}, part_zero + 50s) == "report_lost close -> lost");
    CHECK(part.loss() == part_loss{part_loss::kind::overdue});
    auto patient = after(ways_to_live[3]);
    take(patient, stop(duration::max(), duration::max()));
    CHECK(patient.deadline() == time_point::max());
}

TEST_CASE("hosts part: a deadline that is seen late gives the agent its time once more") {
    auto part = after(ways_to_live[3]);
    take(part, stop(30s));  // until 50 s
    const auto late = part_zero + 110s;  // both ends stood still
    CHECK(take(part, {part_hears::deadline}, late) == "-> stopping");
    CHECK(part.deadline() == late + 50s);
    CHECK(take(part, ended(0), late + 1s) == "report_ended 0 -> stopping");
    CHECK(take(part, {part_hears::deadline}, late + 50s) == "report_lost close -> lost");
    CHECK(part.loss() == part_loss{part_loss::kind::overdue});
}

TEST_CASE("hosts part: messages hold up a report for ten minutes at most") {
    constexpr part_event held_up{.what = part_hears::deadline, .is_held_up = true};
    auto part = after(ways_to_live[3]);
    take(part, stop(30s));
    const auto due = *part.deadline();
    CHECK(take(part, held_up, due) == "-> stopping");
    CHECK(part.deadline() == due + 50s);
    auto idle = part;
    CHECK(take(idle, {part_hears::deadline}, due + 50s) == "report_lost close -> lost");
    while (*part.deadline() < due + 10min)
        REQUIRE(take(part, held_up, *part.deadline()) == "-> stopping");
    CHECK(take(part, held_up, *part.deadline()) == "report_lost close -> lost");
    CHECK(part.loss() == part_loss{part_loss::kind::overdue});
}

TEST_CASE("hosts part: however the link ends, the host is lost once unless it has reported") {
    const std::vector<std::pair<part_event, part_loss>> ways{
        {{part_hears::left}, {part_loss::kind::left}},
        {{part_hears::cut}, {part_loss::kind::cut}},
        {{part_hears::silent}, {part_loss::kind::silent}},
        {{part_hears::broken, 0, {}, breach::newline},
         {part_loss::kind::broke_protocol, breach::newline}}};
    for (const auto& life : ways_to_live)
        for (const auto& [end, loss] : ways) {
            auto part = after(life);
            const auto ends = part.has_ended(1);
            CHECK(take(part, end) == "report_lost close -> lost");
            CHECK(part.loss() == loss);
            CHECK(part.has_ended(1) == ends);
            CHECK(take(part, end) == "-> lost");
            CHECK(take(part, ended(0)) == "-> lost");
            CHECK(take(part, {part_hears::reported}) == "-> lost");
            CHECK(part.loss() == loss);
        }
}

TEST_CASE("hosts part: what an agent can't say in this state breaks the protocol") {
    const auto& running = ways_to_live[3];
    const std::vector<std::pair<std::vector<part_event>, part_event>> table{
        {{}, {part_hears::started}},
        {{}, {part_hears::not_started}},
        {{}, ended(0)},
        {{}, {part_hears::reported}},
        {ways_to_live[1], {part_hears::reported}},
        {ways_to_live[1], ended(0)},  // not yet started
        {running, {part_hears::started}},
        {running, {part_hears::not_started}},
        {running, {part_hears::reported}},  // two are alive
        {running, ended(2)},
        {ways_to_live[4], ended(1)},  // for the second time
        {ways_to_live[4], {part_hears::reported}},
        {ways_to_live[5], {part_hears::started}},
        {ways_to_live[6], {part_hears::reported}},
    };
    for (std::size_t row = 0; row < table.size(); ++row) {
        CAPTURE(row);
        auto part = after(table[row].first);
        CHECK(take(part, table[row].second) == "report_lost close -> lost");
        CHECK(part.loss() == part_loss{part_loss::kind::broke_protocol, breach::order});
    }
}

namespace {

/// Whatever can be handed in, possible or not.
std::vector<part_event> all_events() {
    return {{part_hears::start},
            {part_hears::open_gate},
            stop(30s),
            stop(1s),
            {part_hears::started},
            {part_hears::not_started},
            ended(0),
            ended(1),
            ended(2),
            {part_hears::reported},
            {part_hears::deadline},
            {part_hears::left},
            {part_hears::cut},
            {part_hears::silent},
            {part_hears::broken, 0, {}, breach::kind}};
}

/// Tries each event in each state that some events lead to.
struct every_order {
    const std::vector<part_event> events = all_events();
    std::vector<std::size_t> path = {};
    std::size_t tried = 0;

    void go_on(const watched_part& from, std::size_t depth, time_point now) {
        for (std::size_t i = 0; i < events.size(); ++i) {
            const bool waits = events[i].what == part_hears::deadline && from.part.deadline();
            const auto then = waits ? *from.part.deadline() : now + 1s;
            auto next = from;
            path.push_back(i);
            next.on(events[i], then);
            ++tried;
            if (next.broken != nullptr) {
                CAPTURE(path);
                FAIL(next.broken);
            }
            // At the end one more event of each kind is enough, because nothing changes any more.
            if (depth > 1)
                go_on(next, next.part.is_over() ? 1 : depth - 1, then);
            path.pop_back();
        }
    }
};

}  // namespace

TEST_CASE("hosts part: every order of events keeps every rule") {
    every_order search;
    search.go_on(watched_part(2), cohort::test::under_asan || cohort::test::under_tsan ? 6 : 7,
                 part_zero);
    CHECK(search.tried > 50'000);
}

}  // namespace hosts_part_test
