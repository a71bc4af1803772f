// SPDX-License-Identifier: BSL-1.0
// What the lifecycle says of a worker whose end needs an explanation: who sent SIGKILL, and why an
// exit status is unknown.
#include "group/lifecycle/verdict.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

namespace lifecycle_kill_test {

using namespace cohort::groups;
using namespace std::chrono_literals;
using cohort::cause;
using cohort::exit_status;

namespace {

constexpr const char* not_ours = "SIGKILL, not sent by this group";
constexpr const char* out_of_memory = "killed by the kernel's out-of-memory killer: limit 64.0 MiB";

time_point at(int second) { return time_point{} + 1h + std::chrono::seconds(second); }

function_progress entered() {
    function_progress p;
    p.entered = true;
    return p;
}
function_progress returned() {
    auto p = entered();
    p.returned = at(30);
    return p;
}
function_progress raised() {
    auto p = entered();
    p.raised = at(30);
    return p;
}
function_progress crashed() {
    auto p = entered();
    p.crashed = at(30);
    return p;
}

/// A command that is started at second 10; its end by this signal is seen at second 50.
worker_facts killed_by(int signo = SIGKILL) {
    worker_facts f;
    f.status = exit_status::from_signal(signo, false);
    f.started = at(10);
    f.exit_seen = at(50);
    return f;
}

void check(const worker_facts& facts, cause why, const std::string& note) {
    const auto v = judge(facts, {0});
    CHECK_FALSE(v.success);
    CHECK(v.cause == why);
    CHECK(v.note == note);
    CHECK(v.victim == (why == cause::stopped || why == cause::killed));
}

}  // namespace

TEST_CASE("lifecycle kill: a SIGKILL that the group did not send is reported as that") {
    auto f = killed_by();
    check(f, cause::signaled, not_ours);
    f.stop_sent = at(60);  // after its end
    f.kill_sent = at(70);
    check(f, cause::signaled, not_ours);
    f.function = entered();
    check(f, cause::signaled, not_ours);
}

TEST_CASE("lifecycle kill: a worker that the out-of-memory killer ended is oom_killed") {
    auto f = killed_by();
    f.oom_kill = out_of_memory;
    check(f, cause::oom_killed, out_of_memory);
    f.function = entered();
    check(f, cause::oom_killed, out_of_memory);
    CHECK(first_failure(std::vector{judge(f, {0})}) == 0);
}

TEST_CASE("lifecycle kill: a victim stays a victim whatever its cgroup reports") {
    for (const char* told : {"", out_of_memory}) {
        auto f = killed_by();
        f.oom_kill = told;
        f.stop_sent = at(20);
        check(f, cause::stopped, "");
        f.kill_sent = at(40);
        f.sigkill_is_ours = true;
        check(f, cause::killed, "");
    }
}

TEST_CASE("lifecycle kill: a SIGKILL that the group sent is not explained, even if its target is "
          "no victim") {
    for (const char* told : {"", out_of_memory}) {
        auto f = killed_by();
        f.oom_kill = told;
        f.sigkill_is_ours = true;  // the user asked for it, say
        check(f, cause::signaled, "");
        f.function = crashed();
        f.stop_sent = at(40);  // after its crash, which lasted
        f.kill_sent = at(45);
        check(f, cause::signaled, "");
    }
}

TEST_CASE("lifecycle kill: no other end is explained by the out-of-memory killer") {
    auto f = killed_by(SIGSEGV);
    f.oom_kill = out_of_memory;
    check(f, cause::signaled, "");
    f.status = exit_status::from_code(9);
    check(f, cause::exited, "");
    f = killed_by();
    f.oom_kill = out_of_memory;
    f.has_error = true;  // its own account of its failure counts more
    check(f, cause::raised, "");
    f = killed_by();
    f.oom_kill = out_of_memory;
    f.function = raised();
    check(f, cause::raised, "");
    f.status = exit_status::from_code(0);
    f.function = returned();
    CHECK(judge(f, {0}).success);
    CHECK(judge(f, {0}).note.empty());
}

TEST_CASE("lifecycle kill: a SIGKILL after returning says both") {
    auto f = killed_by();
    f.function = returned();
    check(f, cause::signaled, std::string("after returning; ") + not_ours);
    f.oom_kill = out_of_memory;
    check(f, cause::oom_killed, std::string("after returning; ") + out_of_memory);
}

TEST_CASE(
    "lifecycle kill: a status that the kernel refuses to give is lost, and no SIGKILL is assumed") {
    auto facts = killed_by();
    facts.status = exit_status();
    facts.wait_error = EPERM;
    check(facts, cause::lost, "its exit status could not be had: Operation not permitted");
}

}  // namespace lifecycle_kill_test
