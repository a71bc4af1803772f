// SPDX-License-Identifier: BSL-1.0
#include "group/lifecycle/verdict.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lifecycle_verdict_test {

using namespace cohort::groups;
using namespace std::chrono_literals;
using cohort::cause;
using cohort::exit_status;

using stamp = std::optional<time_point>;

time_point at(int second) { return time_point{} + 1h + std::chrono::seconds(second); }

// Every worker here is started at second 10; its exit is seen at second 50.
constexpr int started = 10;
constexpr int exit_seen = 50;
const std::set<int> zero_and_three{0, 3};

// --- what it was, and how it ended ---

struct kind {
    const char* name;
    std::optional<function_progress> function;
    bool has_error;
};

struct status {
    const char* name;
    exit_status value;
    bool unkillable = false;
};

const status statuses[] = {
    {"exit 0", exit_status::from_code(0)},
    {"exit 3 (accepted)", exit_status::from_code(3)},
    {"exit 7", exit_status::from_code(7)},
    {"SIGTERM", exit_status::from_signal(SIGTERM, false)},
    {"SIGSEGV", exit_status::from_signal(SIGSEGV, true)},
    {"lost", exit_status()},
    {"unkillable", exit_status(), true},
};

enum class ending { good, bad };
using enum ending;

struct base {
    ending how;
    cohort::cause cause;
    const char* note = "";
};

struct row {
    kind worker;
    base ends[std::size(statuses)];  // without any signal sent
};

constexpr const char* taken =
    "its exit status was taken by another waiter (a waitpid in this program, or SIGCHLD ignored)";
constexpr const char* returning = "after returning";

function_progress decoding() { return {true, {}, {}}; }
function_progress entered() { return {true, {}, {}, false, {}, {}, true}; }
function_progress returned(int when) { return {true, at(when), {}}; }
function_progress raised(int when) { return {true, {}, at(when)}; }

constexpr base ok{good, cause::exited};
constexpr base ok_ret{good, cause::returned};
constexpr base code{bad, cause::exited};
#define NOT_REACHED(code) "worker_main was not reached (exit code " code "): call it first in main"
constexpr base not_0{bad, cause::exited, NOT_REACHED("0")};
constexpr base not_3{bad, cause::exited, NOT_REACHED("3")};
constexpr base not_7{bad, cause::exited, NOT_REACHED("7")};
constexpr base dec_0{bad, cause::exited, "ended while its arguments were decoded (exit code 0)"};
constexpr base dec_3{bad, cause::exited, "ended while its arguments were decoded (exit code 3)"};
constexpr base dec_7{bad, cause::exited, "ended while its arguments were decoded (exit code 7)"};
constexpr base c_late{bad, cause::exited, returning};
constexpr base sig{bad, cause::signaled};
constexpr base s_late{bad, cause::signaled, returning};
constexpr base rais{bad, cause::raised};
constexpr base r_lost{bad, cause::raised, taken};
constexpr base lost{bad, cause::lost, taken};
constexpr base stuck{bad, cause::unkillable};
constexpr base u_late{bad, cause::unkillable, returning};

const function_progress never{};

// clang-format off
const row table[] = {
//  exit 0  exit 3  exit 7  SIGTERM SIGSEGV lost    unkillable
{{"command", {}, false},
   {ok,     ok,     code,   sig,    sig,    lost,   stuck}},
{{"command with an error file", {}, true},
   {ok,     ok,     rais,   rais,   rais,   lost,   stuck}},
{{"function, not entered", never, false},
   {not_0,  not_3,  not_7,  sig,    sig,    lost,   stuck}},
{{"function, not entered, with an error file", never, true},
   {not_0,  not_3,  not_7,  sig,    sig,    lost,   stuck}},
{{"function, its arguments are decoded", decoding(), false},
   {dec_0,  dec_3,  dec_7,  sig,    sig,    lost,   stuck}},
{{"function, called", entered(), false},
   {ok,     ok,     code,   sig,    sig,    lost,   stuck}},
{{"function, returned", returned(30), false},
   {ok_ret, ok_ret, c_late, s_late, s_late, ok_ret, u_late}},
{{"function, raised", raised(30), true},
   {rais,   rais,   rais,   rais,   rais,   r_lost, stuck}},
{{"function, raised, stamped before its start", raised(1), true},
   {rais,   rais,   rais,   rais,   rais,   r_lost, stuck}},
{{"function, raised, stamped after its exit", raised(99), true},
   {rais,   rais,   rais,   rais,   rais,   r_lost, stuck}},
};
// clang-format on

// --- what was sent to it, and when ---

enum class mark { none, stopped, killed };

/// Whether a failure is a victim, by its event time: 10 (at the start), 30 or 50 (when the exit is
/// seen).
struct sent {
    const char* name;
    stamp stop;
    stamp kill;
    mark at_10, at_30, at_50;
};

const sent signals[] = {
    {"nothing", {}, {}, mark::none, mark::none, mark::none},
    {"stop before the start", at(5), {}, mark::stopped, mark::stopped, mark::stopped},
    {"stop at the start", at(10), {}, mark::none, mark::stopped, mark::stopped},
    {"stop at 20", at(20), {}, mark::none, mark::stopped, mark::stopped},
    {"stop at 30", at(30), {}, mark::none, mark::none, mark::stopped},
    {"stop at 40", at(40), {}, mark::none, mark::none, mark::stopped},
    {"stop at the exit", at(50), {}, mark::none, mark::none, mark::none},
    {"stop after the exit", at(60), {}, mark::none, mark::none, mark::none},
    {"stop at 5, kill at 20", at(5), at(20), mark::stopped, mark::killed, mark::killed},
    {"stop at 20, kill at 30", at(20), at(30), mark::none, mark::stopped, mark::killed},
    {"stop at 20, kill at 40", at(20), at(40), mark::none, mark::stopped, mark::killed},
    {"stop at 20, kill at the exit", at(20), at(50), mark::none, mark::stopped, mark::stopped},
    {"stop and kill at 30", at(30), at(30), mark::none, mark::none, mark::killed},
    {"stop and kill at the exit", at(50), at(50), mark::none, mark::none, mark::none},
    {"stop and kill after the exit", at(60), at(70), mark::none, mark::none, mark::none},
    {"kill at 20", {}, at(20), mark::none, mark::killed, mark::killed},
    {"kill at 30", {}, at(30), mark::none, mark::none, mark::killed},
    {"kill at the exit", {}, at(50), mark::none, mark::none, mark::none},
};

worker_facts facts_of(const kind& k, const status& s, const sent& signal) {
    worker_facts f;
    f.status = s.value;
    f.unkillable = s.unkillable;
    f.function = k.function;
    f.has_error = k.has_error;
    f.started = at(started);
    f.exit_seen = at(exit_seen);
    f.stop_sent = signal.stop;
    f.kill_sent = signal.kill;
    return f;
}

worker_facts function_facts(function_progress p, exit_status s) {
    return facts_of({"", p, false}, {"", s}, signals[0]);
}

worker_facts command_facts(exit_status s) { return facts_of({"", {}, false}, {"", s}, signals[0]); }

/// 10, 30 or 50.
int expected_time(const kind& k) {
    if (!k.function || !k.function->raised)
        return exit_seen;
    return *k.function->raised == at(1) ? started : *k.function->raised == at(99) ? exit_seen : 30;
}

void check_one(const row& r, const status& s, const base& without_signals, const sent& signal) {
    const verdict v = judge(facts_of(r.worker, s, signal), zero_and_three);
    CHECK(v.success == (without_signals.how == good));
    CHECK(v.note == without_signals.note);

    const int time = expected_time(r.worker);
    CHECK(v.event_time == at(time));
    mark expected = time == 10 ? signal.at_10 : time == 30 ? signal.at_30 : signal.at_50;
    if (v.success)
        expected = mark::none;
    const bool raised = r.worker.function && r.worker.function->raised;
    if (s.unkillable) {
        CHECK(v.cause == cause::unkillable);
        CHECK(v.victim == (expected != mark::none || ((signal.stop || signal.kill) && !raised)));
    } else if (without_signals.cause == cause::lost) {
        CHECK(v.cause == cause::lost);  // whatever was sent: nobody knows what it died of
        CHECK(v.victim == (expected != mark::none));
    } else {
        CHECK(v.victim == (expected != mark::none));
        CHECK(v.cause == (expected == mark::stopped  ? cause::stopped
                          : expected == mark::killed ? cause::killed
                                                     : without_signals.cause));
    }
}

TEST_CASE("lifecycle verdict: a worker without a record failed when its exception left it, "
          "whatever its status") {
    worker_facts facts;
    facts.function = function_progress{true, {}, {}, false, {}, at(30)};
    facts.started = at(10);
    facts.exit_seen = at(90);
    facts.stop_sent = at(40);
    facts.kill_sent = at(50);
    facts.sigkill_is_ours = true;
    for (const auto status :
         {exit_status::from_signal(SIGKILL, false), exit_status::from_code(0)}) {
        facts.status = status;
        const auto v = judge(facts, {0});
        CHECK_FALSE(v.success);
        CHECK_FALSE(v.victim);
        CHECK(v.event_time == at(30));
        CHECK(v.note == "it had failed, and ended before it could say how");
    }
}

TEST_CASE("lifecycle verdict: every kind of worker, ending and signal is judged by the table") {
    for (const row& r : table) {
        for (std::size_t i = 0; i < std::size(statuses); ++i) {
            for (const sent& signal : signals) {
                CAPTURE(r.worker.name);
                CAPTURE(statuses[i].name);
                CAPTURE(signal.name);
                check_one(r, statuses[i], r.ends[i], signal);
            }
        }
    }
}

TEST_CASE("lifecycle verdict: a function that returned succeeds with exit 0 whatever codes are "
          "accepted") {
    const verdict v = judge(function_facts(returned(30), exit_status::from_code(0)), {3});
    CHECK(v.success);
    CHECK(v.cause == cause::returned);
}

TEST_CASE("lifecycle verdict: where 0 is not an accepted code it is a failure to exit with it") {
    CHECK_FALSE(judge(command_facts(exit_status::from_code(0)), {3}).success);
    CHECK_FALSE(judge(function_facts(entered(), exit_status::from_code(0)), {3}).success);
    CHECK_FALSE(judge(command_facts(exit_status::from_code(0)), {}).success);
}

TEST_CASE("lifecycle verdict: a program that never reached worker_main fails with every code") {
    CHECK_FALSE(judge(function_facts({}, exit_status::from_code(0)), {0}).success);
    CHECK_FALSE(judge(function_facts({}, exit_status::from_code(3)), {3}).success);
    CHECK(judge(function_facts({}, exit_status::from_code(127)), {}).note.ends_with("says why"));
}

TEST_CASE("lifecycle verdict: a signal number is not an exit code") {
    CHECK_FALSE(judge(command_facts(exit_status::from_signal(3, false)), {3, -3}).success);
    CHECK_FALSE(judge(command_facts(exit_status()), {0, -1}).success);
}

TEST_CASE("lifecycle verdict: a record that says returned counts as entered") {
    function_progress torn = returned(30);
    torn.entered = false;
    CHECK(judge(function_facts(torn, exit_status::from_code(0)), {0}).success);
    torn = raised(30);
    torn.entered = false;
    CHECK(judge(function_facts(torn, exit_status::from_code(1)), {0}).cause == cause::raised);
}

TEST_CASE("lifecycle verdict: a worker that raised before the stop signal is no victim, seen late "
          "or not") {
    worker_facts f = function_facts(raised(30), exit_status::from_code(1));
    f.stop_sent = at(31);
    f.kill_sent = at(49);
    const verdict v = judge(f, {0});
    CHECK(v.cause == cause::raised);
    CHECK_FALSE(v.victim);
    CHECK(v.event_time == at(30));
}

TEST_CASE("lifecycle verdict: a failure after returning counts from its exit") {
    worker_facts f = function_facts(returned(15), exit_status::from_signal(SIGTERM, false));
    f.stop_sent = at(20);
    const verdict v = judge(f, {0});
    CHECK(v.event_time == at(exit_seen));
    CHECK(v.cause == cause::stopped);
    CHECK(v.note == "after returning");
}

TEST_CASE("lifecycle verdict: a worker that obeys the stop signal and exits with 0 is no victim") {
    worker_facts f = function_facts(entered(), exit_status::from_code(0));
    f.stop_sent = at(20);
    const verdict v = judge(f, {0});
    CHECK(v.success);
    CHECK_FALSE(v.victim);
    CHECK(v.cause == cause::exited);
}

TEST_CASE("lifecycle verdict: an exit seen before the start leaves the event time at the exit") {
    worker_facts f = function_facts(raised(30), exit_status::from_code(1));
    f.exit_seen = at(started - 5);
    CHECK(judge(f, {0}).event_time == at(started - 5));
}

TEST_CASE("lifecycle verdict: one nanosecond after the signal makes a victim") {
    worker_facts f = command_facts(exit_status::from_code(1));
    f.stop_sent = f.exit_seen;
    CHECK_FALSE(judge(f, {0}).victim);
    f.stop_sent = f.exit_seen - 1ns;
    CHECK(judge(f, {0}).victim);
}

TEST_CASE("lifecycle verdict: a worker given up at the instant of its signals is still a victim") {
    for (const bool had_sigkill : {true, false}) {
        worker_facts f = command_facts(exit_status());
        f.unkillable = true;
        f.stop_sent = f.exit_seen;
        if (had_sigkill)
            f.kill_sent = f.exit_seen;
        const verdict v = judge(f, {0});
        CHECK(v.cause == cause::unkillable);
        CHECK(v.victim);
    }
}

TEST_CASE("lifecycle verdict: a worker that had failed before it was given up is no victim") {
    using member = stamp function_progress::*;
    for (const member failed : {&function_progress::raised, &function_progress::crashed,
                                &function_progress::fell_silent}) {
        function_progress progress;
        progress.entered = progress.called = true;
        progress.*failed = at(30);
        worker_facts f = function_facts(progress, exit_status());
        f.unkillable = true;
        f.stop_sent = f.kill_sent = at(40);
        CHECK(judge(f, {0}).cause == cause::unkillable);
        CHECK_FALSE(judge(f, {0}).victim);
        f.stop_sent = at(20);
        CHECK(judge(f, {0}).victim);
    }
}

TEST_CASE("lifecycle verdict: an exit counts from its call, but not a signal that came then") {
    function_progress progress;
    progress.entered = progress.called = true;
    progress.exit_called = at(30);
    worker_facts f = function_facts(progress, exit_status::from_code(3));
    f.exit_seen = at(50);
    f.stop_sent = at(40);
    CHECK(judge(f, {0}).event_time == at(30));
    CHECK(judge(f, {0}).cause == cause::exited);
    CHECK_FALSE(judge(f, {0}).victim);
    f.status = exit_status::from_signal(SIGTERM, false);
    CHECK(judge(f, {0}).event_time == at(50));
    CHECK(judge(f, {0}).victim);
    f.status = exit_status::from_code(3);
    f.function->raised = at(45);
    CHECK(judge(f, {0}).event_time == at(45));
}

TEST_CASE("lifecycle verdict: who was exiting when the group looked is no victim of its signals") {
    using enum verdict::origin;
    worker_facts facts;
    facts.status = exit_status::from_signal(SIGKILL, false);
    facts.started = at(started);
    facts.exit_seen = at(exit_seen);
    CHECK(judge(facts, {0}).from == not_another);  // it ended before any look
    facts.stop_sent = facts.kill_sent = at(20);
    facts.sigkill_is_ours = true;
    facts.exiting_at_look = true;
    const auto early = judge(facts, {0});
    CHECK(early.cause == cause::signaled);
    CHECK_FALSE(early.victim);
    CHECK(early.from == not_another);
    CHECK(early.note == "SIGKILL, not sent by this group");
    facts.exiting_at_look = false;
    const auto late = judge(facts, {0});
    CHECK(late.cause == cause::killed);
    CHECK(late.victim);
    facts.exiting_at_look = true;
    facts.unkillable = true;
    CHECK(judge(facts, {0}).victim);
}

TEST_CASE("lifecycle verdict: only signals that no worker causes by its end are its own death") {
    using enum verdict::origin;
    const auto origin_of = [](exit_status status, std::optional<bool> exiting,
                              std::optional<function_progress> function = {}) {
        worker_facts facts;
        facts.status = status;
        facts.function = function;
        facts.started = at(started);
        facts.exit_seen = at(exit_seen);
        facts.exiting_at_look = exiting;
        return judge(facts, {0}).from;
    };
    const auto died = [](int signal) { return exit_status::from_signal(signal, false); };
    for (const int signal : {SIGKILL, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXCPU}) {
        CAPTURE(signal);
        CHECK(origin_of(died(signal), {}) == not_another);
        CHECK(origin_of(died(signal), true) == not_another);
        CHECK(origin_of(died(signal), false) == unknown);
        CHECK(origin_of(died(signal), true, entered()) == not_another);
        CHECK(origin_of(died(signal), true, raised(20)) == perhaps_another);
        auto recorded = entered();
        recorded.crashed = at(20);
        CHECK(origin_of(died(signal), true, recorded) == perhaps_another);
    }
    for (const int signal : {SIGPIPE, SIGHUP, SIGTERM, SIGINT, SIGUSR1, SIGALRM, SIGXFSZ}) {
        CAPTURE(signal);
        CHECK(origin_of(died(signal), {}) == perhaps_another);
        CHECK(origin_of(died(signal), true) == perhaps_another);
    }
    CHECK(origin_of(exit_status::from_code(1), true) == perhaps_another);
    CHECK(origin_of(exit_status(), true) == unknown);
}

}  // namespace lifecycle_verdict_test
