// SPDX-License-Identifier: BSL-1.0
#include "lifecycle_support.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

namespace lifecycle_ladder_test {

using namespace lifecycle_test;

// The ladder as time lines, and lengths at their limits.

namespace {

using enum event;

struct moment {
    duration when;
    event what;
    const char* expected;
};

void follow(machine m, const std::vector<moment>& line) {
    for (const moment& each : line) {
        CAPTURE(each.when.count());
        CAPTURE(to_string(each.what));
        CHECK(take(m, each.what, each.when) == each.expected);
    }
}

}  // namespace

TEST_CASE("lifecycle ladder: a failure runs the whole ladder") {
    follow(after(usual, {worker_started, worker_started, start_finished}),
           {{1s, worker_failed, "-> noticing until 6, 1 live"},
            {6s, deadline, "send_stop_signal -> stopping until 36, 1 live"},
            {36s, deadline, "send_kill -> killing until 46, 1 live"},
            {46s, deadline, "give_up report_end -> ended, 0 live"},
            {47s, worker_failed, "-> ended, 0 live"}});
}

TEST_CASE("lifecycle ladder: a stop begins with the stop signal") {
    follow(after(usual, {worker_started, start_finished}),
           {{1s, stop_asked, "send_stop_signal -> stopping until 31, 1 live"},
            {31s, deadline, "send_kill -> killing until 41, 1 live"},
            {32s, worker_failed, "report_end -> ended, 0 live"}});
}

TEST_CASE("lifecycle ladder: a failed start begins with SIGKILL") {
    follow(after(usual, {worker_started, worker_started}),
           {{1s, start_failed, "send_kill -> killing until 11, 2 live"},
            {2s, worker_failed, "-> killing until 11, 1 live"},
            {3s, stop_asked, "-> killing until 11, 1 live"},
            {4s, worker_failed, "report_end -> ended, 0 live"}});
}

TEST_CASE("lifecycle ladder: each step ends early when all have ended") {
    follow(after(usual, {worker_started, worker_started, start_finished}),
           {{1s, worker_failed, "-> noticing until 6, 1 live"},
            {2s, worker_ended_well, "report_end -> ended, 0 live"}});
    follow(after(usual, {worker_started, start_finished, stop_asked}),
           {{1s, worker_ended_well, "report_end -> ended, 0 live"}});
}

TEST_CASE("lifecycle ladder: a second stop keeps the first deadline") {
    follow(after(usual, {worker_started, start_finished}),
           {{1s, stop_asked, "send_stop_signal -> stopping until 31, 1 live"},
            {20s, stop_asked, "-> stopping until 31, 1 live"},
            {31s, deadline, "send_kill -> killing until 41, 1 live"},
            {32s, stop_asked, "-> killing until 41, 1 live"}});
}

TEST_CASE("lifecycle ladder: a second failure keeps the first notice") {
    follow(after(usual, {worker_started, worker_started, worker_started, start_finished}),
           {{1s, worker_failed, "-> noticing until 6, 2 live"},
            {5s, worker_failed, "-> noticing until 6, 1 live"}});
}

TEST_CASE("lifecycle ladder: a stop cuts the notice short") {
    follow(after(usual, {worker_started, worker_started, start_finished}),
           {{1s, worker_failed, "-> noticing until 6, 1 live"},
            {2s, stop_asked, "send_stop_signal -> stopping until 32, 1 live"}});
}

TEST_CASE("lifecycle ladder: a late signal does not shorten the step that it begins") {
    follow(after(usual, {worker_started, start_finished}),
           {{1s, stop_asked, "send_stop_signal -> stopping until 31, 1 live"},
            {100s, deadline, "send_kill -> killing until 110, 1 live"}});
}

TEST_CASE("lifecycle ladder: a failure during the start waits for the rest of the start") {
    follow(machine(usual), {{0s, worker_started, "-> starting, 1 live"},
                            {1s, worker_failed, "-> starting, 0 live"},
                            {2s, worker_started, "-> starting, 1 live"},
                            {3s, start_finished, "-> noticing until 8, 1 live"}});
}

TEST_CASE("lifecycle ladder: the start in flight gets the signal of the step in which it arrives") {
    follow(machine(usual),
           {{0s, worker_started, "-> starting, 1 live"},
            {1s, stop_asked, "hold_start send_stop_signal -> stopping until 31, 1 live"},
            {2s, worker_started, "send_stop_signal -> stopping until 31, 2 live"},
            {31s, deadline, "send_kill -> killing until 41, 2 live"},
            {32s, worker_started, "send_kill -> killing until 41, 3 live"},
            {33s, start_finished, "-> killing until 41, 3 live"},
            {41s, deadline, "give_up report_end -> ended, 0 live"}});
}

TEST_CASE("lifecycle ladder: a start that hangs is killed, then abandoned, and its answer ends the "
          "group") {
    follow(machine(usual), {{1s, stop_asked, "hold_start -> stopping until 31, 0 live"},
                            {31s, deadline, "send_kill -> killing until 41, 0 live"},
                            {41s, deadline, "give_up -> killing, 0 live"},
                            {41s, start_failed, "report_end -> ended, 0 live"}});
}

TEST_CASE("lifecycle ladder: a worker from an abandoned start gets the last step anew") {
    follow(machine(usual), {{1s, stop_asked, "hold_start -> stopping until 31, 0 live"},
                            {31s, deadline, "send_kill -> killing until 41, 0 live"},
                            {41s, deadline, "give_up -> killing, 0 live"},
                            {42s, worker_started, "send_kill -> killing until 52, 1 live"},
                            {42s, start_finished, "-> killing until 52, 1 live"},
                            {52s, deadline, "give_up report_end -> ended, 0 live"}});
}

TEST_CASE(
    "lifecycle ladder: a start that fails after a stop leaves the workers their grace period") {
    machine m = after(usual, {worker_started, stop_asked});
    CHECK(take(m, start_failed, 1s) == "-> stopping until 30, 1 live");
    CHECK(m.stop_was_asked());
}

TEST_CASE("lifecycle ladder: a start that is over can't fail any more") {
    machine m = after(usual, {worker_started, start_finished});
    CHECK(take(m, start_failed, 1s) == "-> running, 1 live");
}

TEST_CASE("lifecycle ladder: an empty group ends when its start does") {
    follow(machine(usual), {{0s, start_finished, "report_end -> ended, 0 live"},
                            {0s, stop_asked, "-> ended, 0 live"}});
}

TEST_CASE("lifecycle ladder: keep_going lets the last failure end the group") {
    follow(after(keep, {worker_started, worker_started, start_finished}),
           {{1s, worker_failed, "-> running, 1 live"},
            {2s, worker_failed, "report_end -> ended, 0 live"}});
}

TEST_CASE("lifecycle ladder: a stop after the end is not remembered") {
    machine m = after(usual, {start_finished, stop_asked});
    CHECK_FALSE(m.stop_was_asked());
    CHECK(m.start_is_over());
}

// --- lengths at their limits ---

TEST_CASE("lifecycle ladder: steps of length zero are passed in the same call") {
    const std::vector<event> two{worker_started, worker_started, start_finished};
    follow(after({0s, 30s, 10s}, two),
           {{1s, worker_failed, "send_stop_signal -> stopping until 31, 1 live"}});
    follow(after({0s, 0s, 10s}, two),
           {{1s, worker_failed, "send_stop_signal send_kill -> killing until 11, 1 live"}});
    follow(after({5s, 0s, 0s}, two),
           {{1s, worker_failed, "-> noticing until 6, 1 live"},
            {6s, deadline, "send_stop_signal send_kill give_up report_end -> ended, 0 live"}});
    follow(after({0s, 0s, 0s}, two),
           {{1s, stop_asked, "send_stop_signal send_kill give_up report_end -> ended, 0 live"}});
}

TEST_CASE("lifecycle ladder: with lengths of zero a start in flight is still waited for") {
    const rules none{0s, 0s, 0s};
    follow(machine(none), {{1s, stop_asked, "hold_start send_kill give_up -> killing, 0 live"},
                           {2s, worker_started, "send_kill give_up -> killing, 0 live"},
                           {2s, start_finished, "report_end -> ended, 0 live"}});
    follow(after(none, {worker_started}),
           {{1s, stop_asked, "hold_start send_stop_signal send_kill give_up -> killing, 0 live"},
            {1s, start_failed, "report_end -> ended, 0 live"}});
}

TEST_CASE("lifecycle ladder: negative lengths count as zero") {
    follow(after({-5s, duration::min(), -1ns}, {worker_started, worker_started, start_finished}),
           {{1s, worker_failed, "send_stop_signal send_kill give_up report_end -> ended, 0 live"}});
}

TEST_CASE(
    "lifecycle ladder: a step too long for the clock never ends, and a stop goes on from it") {
    const rules longest{duration::max(), duration::max(), duration::max()};
    follow(after(longest, {worker_started, worker_started, start_finished}),
           {{1s, worker_failed, "-> noticing until ever, 1 live"},
            {24h * 365 * 200, deadline, "-> noticing until ever, 1 live"},
            {24h * 365 * 200, stop_asked, "send_stop_signal -> stopping until ever, 1 live"},
            {24h * 365 * 200, worker_failed, "report_end -> ended, 0 live"}});
}

TEST_CASE(
    "lifecycle ladder: deadlines are added without overflow on both sides of the clock's epoch") {
    const rules longest{duration::max(), duration::max(), duration::max()};
    for (const time_point now : {time_point::min(), time_point{} - 1ns, time_point{},
                                 time_point{} + 1ns, time_point::max()}) {
        machine m(longest);
        m.on(stop_asked, now);
        REQUIRE(m.deadline());
        CHECK(*m.deadline() >= now);
        if (now >= time_point{})
            CHECK(*m.deadline() == time_point::max());
    }
}

TEST_CASE("lifecycle ladder: shortened before it begins, the ladder has shorter steps") {
    machine m = after(usual, {worker_started, start_finished});
    m.shorten({8s, 8s, 8s}, at(1s));
    follow(m, {{1s, stop_asked, "send_stop_signal -> stopping until 9, 1 live"},
               {9s, deadline, "send_kill -> killing until 17, 1 live"}});
}

TEST_CASE(
    "lifecycle ladder: without grace SIGKILL follows the stop signal at once, also on that step") {
    machine m = after(usual, {worker_started, start_finished});
    m.shorten({.grace_period = 0s}, at(1s));
    follow(m, {{1s, stop_asked, "send_stop_signal send_kill -> killing until 11, 1 live"}});
    machine late = after(usual, {worker_started, start_finished});
    CHECK(take(late, stop_asked, 1s) == "send_stop_signal -> stopping until 31, 1 live");
    late.shorten({.grace_period = 0s}, at(2s));
    CHECK(take(late, deadline, 2s) == "send_kill -> killing until 12, 1 live");
}

TEST_CASE("lifecycle ladder: shortened on a step, that step ends no later than that from now on") {
    machine m = after(usual, {worker_started, start_finished});
    CHECK(take(m, stop_asked, 1s) == "send_stop_signal -> stopping until 31, 1 live");
    m.shorten({8s, 8s, 8s}, at(2s));
    CHECK(take(m, stop_asked, 2s) == "-> stopping until 10, 1 live");
    m.shorten({20s, 20s, 20s}, at(3s));
    CHECK(take(m, stop_asked, 3s) == "-> stopping until 10, 1 live");
    CHECK(take(m, deadline, 10s) == "send_kill -> killing until 18, 1 live");
}

}  // namespace lifecycle_ladder_test
