// SPDX-License-Identifier: BSL-1.0
#include "lifecycle_support.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

namespace lifecycle_time_test {

using namespace lifecycle_test;

// The time limit of a group, and workers that wait until others have ended.

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

// --- the time limit of the group ---

namespace {

/// A machine whose time began at second 0.
machine limited(duration limit, const std::vector<event>& script, rules r = usual) {
    r.time_limit = limit;
    machine m(r);
    m.begin(at(0s));
    for (const event e : script)
        m.on(e, at(0s));
    return m;
}

}  // namespace

TEST_CASE("lifecycle time: at its time limit a group is stopped by the ladder") {
    machine m = limited(60s, {worker_started, worker_started, start_finished});
    follow(m, {{59s, deadline, "-> running until 60, 2 live"},
               {60s, deadline, "send_stop_signal -> stopping until 90, 2 live"},
               {61s, worker_failed, "-> stopping until 90, 1 live"},
               {90s, deadline, "send_kill -> killing until 100, 1 live"}});
    CHECK_FALSE(m.timed_out());
    m.on(deadline, at(60s));
    CHECK(m.timed_out());
    CHECK(m.time_is_up());
}

TEST_CASE("lifecycle time: a time limit that is reached during the start ends the start") {
    machine m = limited(2s, {worker_started});
    CHECK(take(m, deadline, 2s) == "hold_start send_stop_signal -> stopping until 32, 1 live");
    CHECK(m.timed_out());
    machine at_once = limited(0s, {});
    CHECK(take(at_once, deadline, 0s) == "hold_start -> stopping until 30, 0 live");
    CHECK(at_once.timed_out());
}

TEST_CASE("lifecycle time: a failure or a stop before the time limit is what stops the group") {
    machine failed = limited(6s, {worker_started, worker_started, start_finished});
    CHECK(take(failed, worker_failed, 3s) == "-> noticing until 6, 1 live");
    CHECK(take(failed, deadline, 6s) == "send_stop_signal -> stopping until 36, 1 live");
    CHECK_FALSE(failed.timed_out());
    CHECK(failed.time_is_up());
    machine in_start = limited(6s, {worker_started, worker_started, worker_failed});
    CHECK(take(in_start, deadline, 6s) ==
          "hold_start send_stop_signal -> stopping until 36, 1 live");
    CHECK_FALSE(in_start.timed_out());
    machine stopped = limited(60s, {worker_started, start_finished, stop_asked});
    CHECK(take(stopped, deadline, 60s) == "send_kill -> killing until 70, 1 live");
    CHECK_FALSE(stopped.time_is_up());
    machine goes_on =
        limited(6s, {worker_started, worker_started, start_finished, worker_failed}, keep);
    CHECK(take(goes_on, deadline, 6s) == "send_stop_signal -> stopping until 36, 1 live");
    CHECK(goes_on.timed_out());
}

TEST_CASE("lifecycle time: a group that ends in time, or has no end of its time, is not late") {
    machine m = limited(6s, {worker_started, start_finished});
    CHECK(take(m, worker_ended_well, 6s) == "report_end -> ended, 0 live");
    CHECK(take(m, deadline, 7s) == "-> ended, 0 live");
    CHECK_FALSE(m.time_is_up());
    machine ever = limited(duration::max(), {worker_started, start_finished});
    CHECK(take(ever, deadline, 1000h) == "-> running until ever, 1 live");
}

// --- workers that wait until others have ended ---

namespace {

machine batch(int waiting, const std::vector<event>& script, rules r = usual) {
    machine m(r, waiting);
    for (const event e : script)
        m.on(e, at(0s));
    return m;
}

}  // namespace

TEST_CASE("lifecycle time: a group with workers that wait lives until they have ended") {
    machine m = batch(2, {worker_started, start_finished});
    follow(m, {{1s, worker_ended_well, "-> running, 0 live"},
               {2s, worker_started, "-> running, 1 live"},
               {3s, worker_ended_well, "-> running, 0 live"},
               {4s, worker_started, "-> running, 1 live"},
               {5s, worker_ended_well, "report_end -> ended, 0 live"}});
}

TEST_CASE("lifecycle time: nobody is started once a group is being stopped") {
    machine stopped = batch(1, {worker_started, start_finished});
    follow(stopped, {{1s, stop_asked, "hold_start send_stop_signal -> stopping until 31, 1 live"},
                     {1s, worker_dropped, "-> stopping until 31, 1 live"},
                     {2s, worker_failed, "report_end -> ended, 0 live"}});
    machine failed = batch(2, {worker_started, worker_started, start_finished});
    follow(failed, {{1s, worker_failed, "hold_start -> noticing until 6, 1 live"},
                    {1s, worker_dropped, "-> noticing until 6, 1 live"},
                    {6s, deadline, "send_stop_signal -> stopping until 36, 1 live"},
                    {7s, worker_failed, "-> stopping until 36, 0 live"},
                    {8s, worker_dropped, "report_end -> ended, 0 live"}});
    machine in_start = batch(1, {worker_started});
    follow(in_start, {{1s, stop_asked, "hold_start send_stop_signal -> stopping until 31, 1 live"},
                      {1s, worker_dropped, "-> stopping until 31, 1 live"},
                      {2s, start_finished, "-> stopping until 31, 1 live"},
                      {3s, worker_failed, "report_end -> ended, 0 live"}});
}

TEST_CASE("lifecycle time: a worker that is being started when the group stops is stopped too") {
    machine m = batch(1, {worker_started, start_finished, worker_ended_well});
    follow(m, {{1s, stop_asked, "hold_start -> stopping until 31, 0 live"},
               {2s, worker_started, "send_stop_signal -> stopping until 31, 1 live"},
               {31s, deadline, "send_kill -> killing until 41, 1 live"}});
}

TEST_CASE("lifecycle time: a worker that could not be started later has failed") {
    machine stops = batch(1, {worker_started, start_finished});
    follow(stops, {{1s, worker_not_started, "-> noticing until 6, 1 live"}});
    machine goes_on = batch(1, {worker_started, start_finished}, keep);
    follow(goes_on, {{1s, worker_not_started, "-> running, 1 live"},
                     {2s, worker_ended_well, "report_end -> ended, 0 live"}});
}

TEST_CASE("lifecycle time: a worker that will be started again keeps its group alive") {
    machine m = batch(0, {worker_started, start_finished});
    follow(m, {{1s, worker_restarts, "-> running, 0 live"},
               {2s, worker_started, "-> running, 1 live"},
               {3s, worker_restarts, "-> running, 0 live"},
               {4s, stop_asked, "hold_start -> stopping until 34, 0 live"},
               {4s, worker_dropped, "report_end -> ended, 0 live"}});
}

}  // namespace lifecycle_time_test
