// SPDX-License-Identifier: BSL-1.0
#include "lifecycle_support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace lifecycle_machine_test {

using namespace lifecycle_test;

namespace {

using enum event;
using enum on_failure;

// --- the table: a situation, and what each event does in it ---

/// Situations are reached at second 0, those in `killing` at second 30. Each event comes one second
/// later, event::deadline at the deadline, if there is one.
struct row {
    const char* name;
    on_failure policy;
    std::vector<event> script;
    const char* expected[7];  // in the order of all_events
};

constexpr event all_events[] = {worker_started, start_finished, start_failed, worker_ended_well,
                                worker_failed,  stop_asked,     deadline};

// clang-format off
const row table[] = {
{"starting, nobody yet", stop_all, {}, {
    "-> starting, 1 live",
    "report_end -> ended, 0 live",
    "report_end -> ended, 0 live",
    "-> starting, 0 live",
    "-> starting, 0 live",
    "hold_start -> stopping until 31, 0 live",
    "-> starting, 0 live"}},
{"starting", stop_all, {worker_started, worker_started}, {
    "-> starting, 3 live",
    "-> running, 2 live",
    "send_kill -> killing until 11, 2 live",
    "-> starting, 1 live",
    "-> starting, 1 live",
    "hold_start send_stop_signal -> stopping until 31, 2 live",
    "-> starting, 2 live"}},
{"starting, the only one", stop_all, {worker_started}, {
    "-> starting, 2 live",
    "-> running, 1 live",
    "send_kill -> killing until 11, 1 live",
    "-> starting, 0 live",
    "-> starting, 0 live",
    "hold_start send_stop_signal -> stopping until 31, 1 live",
    "-> starting, 1 live"}},
{"starting, a failure noted", stop_all, {worker_started, worker_started, worker_failed}, {
    "-> starting, 2 live",
    "-> noticing until 6, 1 live",
    "send_kill -> killing until 11, 1 live",
    "-> starting, 0 live",
    "-> starting, 0 live",
    "hold_start send_stop_signal -> stopping until 31, 1 live",
    "-> starting, 1 live"}},
{"starting, a failure noted, nobody left", stop_all, {worker_started, worker_failed}, {
    "-> starting, 1 live",
    "report_end -> ended, 0 live",
    "report_end -> ended, 0 live",
    "-> starting, 0 live",
    "-> starting, 0 live",
    "hold_start -> stopping until 31, 0 live",
    "-> starting, 0 live"}},
{"starting, a failure noted, keep_going", keep_going,
 {worker_started, worker_started, worker_failed}, {
    "-> starting, 2 live",
    "-> running, 1 live",
    "send_kill -> killing until 11, 1 live",
    "-> starting, 0 live",
    "-> starting, 0 live",
    "hold_start send_stop_signal -> stopping until 31, 1 live",
    "-> starting, 1 live"}},
{"running", stop_all, {worker_started, worker_started, start_finished}, {
    "-> running, 3 live",
    "-> running, 2 live",
    "-> running, 2 live",
    "-> running, 1 live",
    "-> noticing until 6, 1 live",
    "send_stop_signal -> stopping until 31, 2 live",
    "-> running, 2 live"}},
{"running, the last one", stop_all, {worker_started, start_finished}, {
    "-> running, 2 live",
    "-> running, 1 live",
    "-> running, 1 live",
    "report_end -> ended, 0 live",
    "report_end -> ended, 0 live",
    "send_stop_signal -> stopping until 31, 1 live",
    "-> running, 1 live"}},
{"running, keep_going", keep_going, {worker_started, worker_started, start_finished}, {
    "-> running, 3 live",
    "-> running, 2 live",
    "-> running, 2 live",
    "-> running, 1 live",
    "-> running, 1 live",
    "send_stop_signal -> stopping until 31, 2 live",
    "-> running, 2 live"}},
{"noticing", stop_all,
 {worker_started, worker_started, worker_started, start_finished, worker_failed}, {
    "-> noticing until 5, 3 live",
    "-> noticing until 5, 2 live",
    "-> noticing until 5, 2 live",
    "-> noticing until 5, 1 live",
    "-> noticing until 5, 1 live",
    "send_stop_signal -> stopping until 31, 2 live",
    "send_stop_signal -> stopping until 35, 2 live"}},
{"noticing, the last one", stop_all,
 {worker_started, worker_started, start_finished, worker_failed}, {
    "-> noticing until 5, 2 live",
    "-> noticing until 5, 1 live",
    "-> noticing until 5, 1 live",
    "report_end -> ended, 0 live",
    "report_end -> ended, 0 live",
    "send_stop_signal -> stopping until 31, 1 live",
    "send_stop_signal -> stopping until 35, 1 live"}},
{"stopping", stop_all, {worker_started, worker_started, start_finished, stop_asked}, {
    "send_stop_signal -> stopping until 30, 3 live",
    "-> stopping until 30, 2 live",
    "-> stopping until 30, 2 live",
    "-> stopping until 30, 1 live",
    "-> stopping until 30, 1 live",
    "-> stopping until 30, 2 live",
    "send_kill -> killing until 40, 2 live"}},
{"stopping, the last one", stop_all, {worker_started, start_finished, stop_asked}, {
    "send_stop_signal -> stopping until 30, 2 live",
    "-> stopping until 30, 1 live",
    "-> stopping until 30, 1 live",
    "report_end -> ended, 0 live",
    "report_end -> ended, 0 live",
    "-> stopping until 30, 1 live",
    "send_kill -> killing until 40, 1 live"}},
{"stopping, a start in flight", stop_all, {worker_started, stop_asked}, {
    "send_stop_signal -> stopping until 30, 2 live",
    "-> stopping until 30, 1 live",
    "-> stopping until 30, 1 live",
    "-> stopping until 30, 0 live",
    "-> stopping until 30, 0 live",
    "-> stopping until 30, 1 live",
    "send_kill -> killing until 40, 1 live"}},
{"stopping, only a start in flight", stop_all, {stop_asked}, {
    "send_stop_signal -> stopping until 30, 1 live",
    "report_end -> ended, 0 live",
    "report_end -> ended, 0 live",
    "-> stopping until 30, 0 live",
    "-> stopping until 30, 0 live",
    "-> stopping until 30, 0 live",
    "send_kill -> killing until 40, 0 live"}},
{"killing", stop_all, {worker_started, worker_started, start_finished, stop_asked, deadline}, {
    "send_kill -> killing until 40, 3 live",
    "-> killing until 40, 2 live",
    "-> killing until 40, 2 live",
    "-> killing until 40, 1 live",
    "-> killing until 40, 1 live",
    "-> killing until 40, 2 live",
    "give_up report_end -> ended, 0 live"}},
{"killing, the last one", stop_all, {worker_started, start_finished, stop_asked, deadline}, {
    "send_kill -> killing until 40, 2 live",
    "-> killing until 40, 1 live",
    "-> killing until 40, 1 live",
    "report_end -> ended, 0 live",
    "report_end -> ended, 0 live",
    "-> killing until 40, 1 live",
    "give_up report_end -> ended, 0 live"}},
{"killing, a start in flight", stop_all, {worker_started, stop_asked, deadline}, {
    "send_kill -> killing until 40, 2 live",
    "-> killing until 40, 1 live",
    "-> killing until 40, 1 live",
    "-> killing until 40, 0 live",
    "-> killing until 40, 0 live",
    "-> killing until 40, 1 live",
    "give_up -> killing, 0 live"}},
{"killing, only a start in flight", stop_all, {stop_asked, deadline}, {
    "send_kill -> killing until 40, 1 live",
    "report_end -> ended, 0 live",
    "report_end -> ended, 0 live",
    "-> killing until 40, 0 live",
    "-> killing until 40, 0 live",
    "-> killing until 40, 0 live",
    "give_up -> killing, 0 live"}},
{"killing, given up, the start not over", stop_all,
 {worker_started, stop_asked, deadline, deadline}, {
    "send_kill -> killing until 51, 1 live",
    "report_end -> ended, 0 live",
    "report_end -> ended, 0 live",
    "-> killing, 0 live",
    "-> killing, 0 live",
    "-> killing, 0 live",
    "-> killing, 0 live"}},
{"ended", stop_all, {worker_started, start_finished, worker_ended_well}, {
    "-> ended, 0 live", "-> ended, 0 live", "-> ended, 0 live", "-> ended, 0 live",
    "-> ended, 0 live", "-> ended, 0 live", "-> ended, 0 live"}},
};
// clang-format on

/// Second 0, or the deadline that ended the last step.
duration reached_at(const row& r) {
    const auto deadlines = std::count(r.script.begin(), r.script.end(), deadline);
    return deadlines == 0 ? 0s : 20s + deadlines * 10s;
}

}  // namespace

TEST_CASE("lifecycle machine: every event in every situation does what the table says") {
    for (const row& r : table) {
        for (std::size_t i = 0; i < std::size(all_events); ++i) {
            CAPTURE(r.name);
            CAPTURE(to_string(all_events[i]));
            machine m = after(r.policy == stop_all ? usual : keep, r.script);
            const bool in_time = all_events[i] == deadline && m.deadline();
            const duration when = in_time ? *m.deadline() - at(0s) : reached_at(r) + 1s;
            CHECK(take(m, all_events[i], when) == r.expected[i]);
        }
    }
}

TEST_CASE("lifecycle machine: before its deadline a step does not change") {
    for (const row& r : table) {
        machine m = after(r.policy == stop_all ? usual : keep, r.script);
        if (!m.deadline())
            continue;
        CAPTURE(r.name);
        const machine before = m;
        CHECK(m.on(deadline, *m.deadline() - 1ns).empty());
        CHECK(m.current() == before.current());
        CHECK(m.deadline() == before.deadline());
    }
}

TEST_CASE("lifecycle machine: only event::deadline acts on a deadline that has passed") {
    machine m = after(usual, {worker_started, worker_started, start_finished, stop_asked});
    CHECK(take(m, worker_ended_well, 31s) == "-> stopping until 30, 1 live");
    CHECK(take(m, stop_asked, 31s) == "-> stopping until 30, 1 live");
    CHECK(take(m, deadline, 31s) == "send_kill -> killing until 41, 1 live");
}

TEST_CASE("lifecycle machine: an exit seen together with the deadline is in time") {
    machine m = after(usual, {worker_started, worker_started, start_finished, stop_asked});
    CHECK(take(m, worker_ended_well, 30s) == "-> stopping until 30, 1 live");
    CHECK(take(m, worker_failed, 30s) == "report_end -> ended, 0 live");
    CHECK(take(m, deadline, 30s) == "-> ended, 0 live");
}

}  // namespace lifecycle_machine_test
