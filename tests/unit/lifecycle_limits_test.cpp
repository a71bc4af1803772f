// SPDX-License-Identifier: BSL-1.0
#include "group/lifecycle/verdict.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <optional>

namespace lifecycle_limits_test {

// Verdicts on workers that were stopped because of a limit.

using namespace cohort::groups;
using namespace std::chrono_literals;
using cohort::cause;
using cohort::exit_status;

namespace {

time_point at(int second) { return time_point{} + 1h + std::chrono::seconds(second); }

// Every worker here is started at second 10; its exit is seen at second 50.
constexpr int exit_seen = 50;

function_progress entered() { return {true, {}, {}, false, {}, {}, true}; }
function_progress returned(int when) { return {true, at(when), {}}; }
function_progress raised(int when) { return {true, {}, at(when)}; }

worker_facts command_facts(exit_status s) {
    worker_facts f;
    f.status = s;
    f.started = at(10);
    f.exit_seen = at(exit_seen);
    return f;
}

worker_facts function_facts(function_progress p, exit_status s) {
    worker_facts f = command_facts(s);
    f.function = p;
    return f;
}

}  // namespace

TEST_CASE("lifecycle limits: a worker that its own limit has stopped has failed then, whatever it "
          "did") {
    for (const auto status : {exit_status::from_code(0), exit_status::from_code(7),
                              exit_status::from_signal(SIGTERM, false), exit_status()}) {
        worker_facts f = command_facts(status);
        f.stop_sent = at(40);
        f.cut = cut_short{at(40), cause::timed_out, "too late"};
        const verdict v = judge(f, {0});
        CHECK_FALSE(v.success);
        CHECK_FALSE(v.victim);
        CHECK(v.cause == cause::timed_out);
        CHECK(v.event_time == at(40));
        CHECK(v.note.starts_with("too late"));
    }
    for (const auto& progress : {entered(), returned(45), raised(45)}) {
        worker_facts f = function_facts(progress, exit_status::from_code(0));
        f.cut = cut_short{at(40), cause::timed_out, "too late"};
        CHECK(judge(f, {0}).cause == cause::timed_out);
        CHECK_FALSE(judge(f, {0}).success);
    }
}

TEST_CASE("lifecycle limits: what happened before a limit, or at that instant, counts") {
    worker_facts well = function_facts(returned(40), exit_status::from_code(0));
    well.cut = cut_short{at(40), cause::timed_out, "too late"};
    CHECK(judge(well, {0}).success);
    CHECK(judge(well, {0}).cause == cause::returned);
    worker_facts badly = function_facts(raised(39), exit_status::from_code(1));
    badly.stop_sent = at(40);
    badly.cut = cut_short{at(40), cause::timed_out, "too late"};
    CHECK(judge(badly, {0}).cause == cause::raised);
    CHECK(judge(badly, {0}).event_time == at(39));
    CHECK_FALSE(judge(badly, {0}).victim);
    worker_facts exited = command_facts(exit_status::from_code(0));
    exited.cut = cut_short{at(exit_seen), cause::timed_out, "too late"};
    CHECK(judge(exited, {0}).success);
}

TEST_CASE("lifecycle limits: a worker that hangs after its limit is unkillable, and no victim") {
    worker_facts f = command_facts(exit_status());
    f.unkillable = true;
    f.stop_sent = at(20);
    f.kill_sent = at(30);
    f.cut = cut_short{at(20), cause::timed_out, "too late"};
    const verdict v = judge(f, {0});
    CHECK(v.cause == cause::unkillable);
    CHECK_FALSE(v.victim);
    CHECK(v.note == "too late");
}

TEST_CASE("lifecycle limits: a worker given up at the instant of a limit had not ended before it") {
    worker_facts f = command_facts(exit_status());
    f.unkillable = true;
    f.stop_sent = f.kill_sent = at(exit_seen);
    for (const auto cut_at : {at(exit_seen), at(exit_seen) + 1ns}) {
        f.cut = cut_short{cut_at, cause::timed_out, "too late", true};
        const verdict v = judge(f, {0});
        CHECK(v.cause == cause::unkillable);
        CHECK(v.victim);
        CHECK(v.note == "too late");
    }
    f.function = raised(40);
    CHECK_FALSE(judge(f, {0}).victim);
    CHECK_FALSE(judge(f, {0}).note.starts_with("too late"));
}

TEST_CASE("lifecycle limits: at the limit of its group a worker is a victim") {
    worker_facts f = function_facts(returned(45), exit_status::from_signal(SIGTERM, false));
    f.cut = cut_short{at(40), cause::timed_out, "too late", true};
    const verdict v = judge(f, {0});
    CHECK(v.cause == cause::timed_out);
    CHECK(v.victim);
    CHECK(v.note == "too late; after returning");
}

}  // namespace lifecycle_limits_test
