// SPDX-License-Identifier: BSL-1.0
// How a group on several hosts judges the ends of its workers, and counts those that run.
#include "hosts/origin/division.hpp"
#include "hosts/origin/far_ends.hpp"
#include "hosts/origin/far_roll.hpp"
#include "hosts/origin/program_check.hpp"

#include <cohort/options.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace far_ends_test {

using namespace cohort;
using namespace cohort::multihost;
using namespace std::chrono_literals;

namespace {

const groups::time_point zero{};

detail::ended_worker end_by(int signo, cohort::cause cause, bool victim, groups::time_point when) {
    outcome left;
    left.index = 1;
    left.cause = cause;
    left.pid = 77;
    left.status = exit_status::from_signal(signo, false);
    left.started = zero;
    left.ended = when;
    detail::ended_worker end;
    end.left = std::make_shared<const outcome>(std::move(left));
    end.victim = victim;
    end.event_time = when;
    return end;
}

detail::ended_worker good_end(groups::time_point when) {
    outcome left;
    left.index = 1;
    left.pid = 77;
    left.cause = cause::exited;
    left.status = exit_status::from_code(0);
    detail::outcome_access::success(left) = true;
    detail::ended_worker end;
    end.left = std::make_shared<const outcome>(std::move(left));
    end.event_time = when;
    return end;
}

lost_worker some_lost() {
    return {3,         2,  77,         "beta", "no beat for 10 s", nullptr, zero + 1s,
            zero + 5s, {}, zero + 15s, {}};
}

}  // namespace

TEST_CASE("far ends: an end is the worker's, with its index in the group") {
    const auto end = judge_told(end_by(SIGSEGV, cause::signaled, false, zero + 3s), 4, {});
    CHECK(end.left.index == 5);
    CHECK(end.judged.cause == cause::signaled);
    CHECK_FALSE(end.judged.success);
    CHECK_FALSE(end.judged.victim);
    CHECK(end.judged.event_time == zero + 3s);
}

TEST_CASE("far ends: a worker that its host stops by itself is the host's failure") {
    const auto victim = end_by(SIGTERM, cause::stopped, true, zero + 3s);
    const auto held = judge_told(victim, 0, {{}, {}, "", {}, true});  // it waited for its start
    CHECK(held.judged.victim);
    CHECK(held.left.cause == victim.left->cause);
    const auto own = judge_told(victim, 0, {});
    CHECK(own.left.cause == cause::host_lost);
    CHECK_FALSE(own.judged.victim);
    CHECK(own.left.note() == "its agent has stopped it");
    auto unborn = *victim.left;
    unborn.pid = 0;
    auto never_started = victim;
    never_started.left = std::make_shared<const outcome>(unborn);
    CHECK(judge_told(never_started, 0, {}).left.cause == cause::stopped);
    const auto told = judge_told(victim, 0, {{}, {}, "its agent was told to end (SIGTERM)", zero});
    CHECK(told.left.note() == "its agent was told to end (SIGTERM)");
    const auto asked = judge_told(victim, 0, {zero + 4s, {}, "", {}});
    CHECK(asked.left.cause == cause::stopped);
    CHECK(asked.judged.victim);
}

TEST_CASE("far ends: SIGTERM from an engine that ends the job is the host's failure") {
    const auto signaled = end_by(SIGTERM, cause::signaled, false, zero + 3s);
    CHECK(judge_told(signaled, 0, {}).left.cause == cause::signaled);
    const auto told = judge_told(signaled, 0, {zero + 4s, {}, "its agent was told to end", zero});
    CHECK(told.left.cause == cause::host_lost);
    const auto other = end_by(SIGUSR1, cause::signaled, false, zero + 3s);
    CHECK(judge_told(other, 0, {{}, {}, "its agent was told to end", zero}).left.cause ==
          cause::signaled);
}

TEST_CASE("far ends: all that a host which was told to end has ended fails in one moment") {
    far_stop by{zero + 4s, {}, "its agent was told to end", zero + 2s};
    const auto obeyed = judge_told(end_by(SIGTERM, cause::signaled, false, zero + 3s), 0, by);
    const auto killed = judge_told(end_by(SIGKILL, cause::killed, true, zero + 9s), 0, by);
    for (const auto& end : {obeyed, killed}) {
        CHECK(end.left.cause == cause::host_lost);
        CHECK(end.judged.event_time == zero + 2s);
        CHECK_FALSE(end.judged.victim);
    }
    by.told_at = zero + 5s;  // after the group's own stop
    CHECK(judge_told(end_by(SIGKILL, cause::killed, true, zero + 9s), 0, by).judged.victim);
}

TEST_CASE("far ends: what ends after the group's time limit has not made it in time") {
    const far_stop late{zero + 4s, 4s, "", {}};
    const auto in_time = judge_told(good_end(zero + 3s), 0, late);
    CHECK(in_time.judged.success);
    const auto after = judge_told(good_end(zero + 5s), 0, late);
    CHECK_FALSE(after.judged.success);
    CHECK_FALSE(after.left.success());
    CHECK(after.left.cause == cause::timed_out);
    CHECK(after.judged.victim);
    CHECK(after.left.note() == "stopped after its group's time limit of 4 s");
    // Its time may seem earlier than it was, because the clocks of hosts are not the same.
    auto obeyed = good_end(zero + 3s);
    obeyed.victim = true;  // says its agent, which had stopped it
    CHECK(judge_told(obeyed, 0, late).left.cause == cause::timed_out);
    const auto victim = judge_told(end_by(SIGTERM, cause::stopped, true, zero + 3s), 0, late);
    CHECK(victim.left.cause == cause::timed_out);
}

TEST_CASE("far ends: a lost worker has failed when its host was heard last") {
    const auto end = judge_lost(some_lost(), {});
    CHECK(end.left.index == 3);
    CHECK(end.left.attempt == 2);
    CHECK(end.left.pid == 77);
    CHECK(end.left.host == "beta");
    CHECK(end.left.cause == cause::host_lost);
    CHECK(end.left.note() == "no beat for 10 s");
    CHECK_FALSE(end.left.status.known());
    CHECK(end.judged.event_time == zero + 5s);
    CHECK_FALSE(end.judged.victim);
    CHECK_FALSE(judge_lost(some_lost(), {zero + 6s, {}, "", {}}).judged.victim);
    CHECK(judge_lost(some_lost(), {zero + 4s, {}, "", {}}).judged.victim);
    auto failed = some_lost();
    failed.failed = zero + 3s;
    const auto own = judge_lost(failed, {zero + 4s, {}, "", {}});
    CHECK_FALSE(own.judged.victim);
    CHECK(own.judged.event_time == zero + 3s);
}

TEST_CASE("far ends: workers that wait are not alive, and a restart has another attempt") {
    groups::snapshot shown(3);
    far_roll roll(shown, 3);
    roll.started(0, 10);
    roll.started(1, 11);
    roll.started(2, 0);
    CHECK(shown.alive() == 2);
    CHECK(shown.waiting() == 1);
    roll.ended(0, true);
    CHECK(roll.attempt(0) == 1);
    CHECK(shown.alive() == 1);
    CHECK(shown.waiting() == 2);
    roll.started(0, 12);
    CHECK(shown.alive() == 2);
    CHECK(shown.pids() == std::vector<pid_t>{12, 11, 0});
    roll.started(0, 13);  // before the end of the attempt before
    CHECK(shown.pids() == std::vector<pid_t>{12, 11, 0});
    roll.ended(0, true);
    CHECK(shown.alive() == 2);
    CHECK(shown.pids() == std::vector<pid_t>{13, 11, 0});
    for (int index = 0; index < 3; ++index)
        roll.ended(index, false);
    roll.started(1, 14);  // after its end
    CHECK(shown.alive() == 0);
    CHECK(shown.waiting() == 0);
}

TEST_CASE("far ends: the first hosts have one more") {
    CHECK(divide(7, 3) == std::vector<int>{3, 2, 2});
    CHECK(divide(2, 3) == std::vector<int>{1, 1, 0});
    CHECK(divide(0, 2) == std::vector<int>{0, 0});
    CHECK(divide(5, 0).empty());
}

TEST_CASE("far ends: a program without a build ID reaches no host") {
    hello own;
    read_value<hello> said;
    said.value = own;
    const auto found = find_misfit(said, own);
    REQUIRE(found);
    CHECK(std::string(found->stage) == "program");
    CHECK(found->text.find("--build-id") != std::string::npos);
}

TEST_CASE("far ends: another build, another protocol and no hello are told apart") {
    hello own;
    own.program = "aa";
    own.library = "bb";
    read_value<hello> said;
    said.value = own;
    CHECK_FALSE(find_misfit(said, own));
    said.value->library = "cc";
    CHECK(std::string(find_misfit(said, own)->stage) == "program");
    CHECK(find_misfit(said, own)->text.find("build ID cc, here bb") != std::string::npos);
    said.value->version = 9;
    CHECK(std::string(find_misfit(said, own)->stage) == "version");
    said.value.reset();
    said.problem = "a message can't be read";
    CHECK(std::string(find_misfit(said, own)->stage) == "hello");
}

}  // namespace far_ends_test
