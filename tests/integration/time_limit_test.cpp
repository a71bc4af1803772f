// SPDX-License-Identifier: BSL-1.0
// options::time_limit, the deadline of a group; options::worker_time_limit, that of each worker.
#include "live_support.hpp"
#include "methods.hpp"
#include "sanitizers.hpp"
#include "silent_file_system.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>

namespace time_limit_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;

namespace {

void wait_for_token(int) { wait_on_token(cohort::this_worker::stop_token()); }

[[noreturn]] void ignore_term(int) {
    std::signal(SIGTERM, SIG_IGN);
    sleep_until_killed();
}

[[noreturn]] void sleep_for_ever(int) { sleep_until_killed(); }

cohort::command sleeping() { return cohort::command("sleep", "1000"); }

/// Ends with 0 at SIGTERM.
cohort::command obedient() {
    return cohort::command("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done");
}

bool is_late(const cohort::outcome& one) { return one.cause == cause::timed_out && !one.success(); }

/// Commands of which worker 0 fails at once, and the others sleep.
cohort::command first_fails(int index) {
    return index == 0 ? cohort::command("false") : sleeping();
}

template <class Work>
cohort::group_timed_out time_out(Work work, cohort::options how) {
    return thrown_by<cohort::group_timed_out>(std::move(work), std::move(how));
}

}  // namespace

TEST_CASE("time limit: at its time limit a group is stopped, and join says so") {
    have_server();
    const leak_guard guard;
    // Doubled until all have started in time.
    auto limit = 300ms;
    auto late = time_out(sleeping(), cohort::options(3).time_limit(limit));
    for (; late.outcomes().size() < 3 && limit < 1min; limit *= 2)
        late = time_out(sleeping(), cohort::options(3).time_limit(2 * limit));
    const double count = static_cast<double>(limit.count());
    const auto length =
        limit < 1s ? fmt::format("{:g} ms", count) : fmt::format("{:g} s", count / 1000);
    CHECK(late.limit() == limit);
    CHECK(late.what() == "the group was stopped after its time limit of " + length);
    CHECK(late.error_index() == -1);
    REQUIRE(late.outcomes().size() == 3);
    for (const auto& one : late.outcomes()) {
        CHECK(is_late(one));
        CHECK(one.status.signal() == SIGTERM);
        CHECK(one.note() == "stopped after its group's time limit of " + length);
        CHECK_FALSE(one.first_failure);
    }
    CHECK(late.report().outcomes.size() == 3);
    CHECK(late.report().time_limit == limit);
    CHECK_FALSE(late.report().name.empty());
    CHECK(late.report().elapsed >= 0s);
    CHECK(to_string(late.report()).find("timed_out") != std::string::npos);
}

TEST_CASE("time limit: functions of every start method are stopped") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        // Some workers may not have started by then, on a busy machine.
        const auto late = time_out(cohort::function<wait_for_token>(),
                                   by(method, 2).time_limit(500ms).grace_period(10s));
        INFO(to_string(late.report()));
        for (const auto& one : late.outcomes())
            CHECK(is_late(one));
    }
}

TEST_CASE("time limit: run throws it too, and wait gives the report") {
    const leak_guard guard;
    CHECK_THROWS_AS(run_coroutine(run_whole(sleeping(), cohort::options(2).time_limit(100ms))),
                    cohort::group_timed_out);
    const auto report = ended(sleeping(), cohort::options(2).time_limit(300ms));
    CHECK_FALSE(report.success());
    CHECK(std::ranges::all_of(report.outcomes, is_late));
}

TEST_CASE("time limit: every join throws it again, and it is a group_stopped") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 2, cohort::options(1).time_limit(1s));
    for (int times = 0; times < 2; ++times) {
        completed<bool> joined;
        group.async_join(joined.into());
        run_out(io);
        CHECK(joined.threw<cohort::group_timed_out>());
        CHECK(joined.threw<cohort::group_stopped>());
    }
    CHECK(group.alive() == 0);
}

TEST_CASE("time limit: workers that ignore the stop signal get SIGKILL after the grace period") {
    have_server();
    const leak_guard guard;
    const auto late = time_out(cohort::function<ignore_term>(),
                               cohort::options(2).time_limit(500ms).grace_period(50ms));
    for (const auto& one : late.outcomes())
        CHECK(is_late(one));
    const auto killed = ended(sleeping(), cohort::options(1).time_limit(300ms).grace_period(0s));
    CHECK(is_late(killed.outcomes.at(0)));
}

TEST_CASE("time limit: a suspended worker ends in time") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 2, cohort::options(1).time_limit(500ms));
    group.signal(SIGSTOP);
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    run_out(io);
    for (const auto& one : waited.take().outcomes) {
        CHECK(is_late(one));
        CHECK(one.status.signal() == SIGTERM);
    }
}

TEST_CASE("time limit: a failure that came before wins") {
    const leak_guard guard;
    // Doubled until the worker of a slow machine has failed in time.
    for (auto limit = 200ms; limit < 1min; limit *= 2) {
        const auto how =
            cohort::options(3).on_failure(cohort::on_failure::keep_going).time_limit(limit);
        const auto report = ended(cohort::command_for(first_fails), how);
        if (report.outcomes.empty() || is_late(report.outcomes[0]))
            continue;
        try {
            run_coroutine(run_whole(cohort::command_for(first_fails), how));
            FAIL("the failure was not thrown");
        } catch (const cohort::group_timed_out&) {
            continue;
        } catch (const cohort::process_exited_exception& failed) {
            CHECK(failed.error_index() == 0);
            CHECK(failed.failed().cause == cause::exited);
            CHECK(is_late(failed.outcomes().at(1)));
        }
        return;
    }
    FAIL("no worker has failed in time");
}

TEST_CASE("time limit: a group that ends in time ends as ever, and its limit is forgotten") {
    const leak_guard guard;
    CHECK(ended(cohort::command("true"), cohort::options(4).time_limit(1h)).success());
    CHECK(ended(cohort::command("true"),
                cohort::options(4).time_limit(std::chrono::hours::max()).worker_time_limit(1h))
              .success());
    CHECK(ended(cohort::command("true"), cohort::options(0).time_limit(0s)).success());
}

TEST_CASE("time limit: with a limit of zero the start throws it, and nothing is left") {
    have_server();
    const leak_guard guard;
    for (int round = 0; round < 20; ++round)
        CHECK_THROWS_AS(run_coroutine(run_whole(sleeping(), cohort::options(20).time_limit(0s))),
                        cohort::group_timed_out);
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::function<sleep_for_ever>(), cohort::options(50).time_limit(0s),
                        started.into());
    run_out(io);
    CHECK(started.threw<cohort::group_timed_out>());
}

TEST_CASE("time limit: a stop that came before is no time-out") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, stubborn(), 1, cohort::options(1).time_limit(2s).grace_period(3s));
    completed<cohort::report> stopped;
    group.async_stop(stopped.into());
    completed<bool> joined;
    group.async_join(joined.into());
    run_out(io);
    CHECK(joined.threw<cohort::group_stopped>());
    CHECK_FALSE(joined.threw<cohort::group_timed_out>());
    CHECK(stopped.take().outcomes.at(0).cause == cause::killed);
}

TEST_CASE("time limit: a join with a timeout waits no longer than that") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 1, cohort::options(1).time_limit(2s));
    completed<bool> polled, joined;
    group.async_join(0s, polled.into());
    group.async_join(1h, joined.into());
    run_out(io);
    CHECK(polled.well());
    CHECK(joined.threw<cohort::group_timed_out>());
}

TEST_CASE("time limit: with stack_on_stop the exception says what each worker was doing") {
    have_server();
    const leak_guard guard;
    asio::io_context io;
    auto group =
        start_ready(io, sleeper(), 2, cohort::options(1).time_limit(2s).stack_on_stop(true));
    completed<bool> joined;
    group.async_join(joined.into());
    run_out(io);
    try {
        (void)joined.take();
        FAIL("it did not throw");
    } catch (const cohort::group_timed_out& late) {
        for (const auto& one : late.report().outcomes) {
            CHECK(is_late(one));
            CHECK_FALSE(one.at_stop.empty());
        }
    }
}

// --- each worker's ---

TEST_CASE("time limit: a worker that takes too long has failed, and the others run on") {
    const leak_guard guard;
    const auto how =
        cohort::options(3).on_failure(cohort::on_failure::keep_going).worker_time_limit(300ms);
    const auto late = thrown_by<cohort::process_exited_exception>(
        cohort::command_for([](int index) { return index == 1 ? sleeping() : obedient(); }), how);
    // All three are stopped, each for itself: also one that then ends with 0 has failed.
    for (const auto& one : late.outcomes()) {
        CHECK(is_late(one));
        CHECK(one.note() == "stopped after its time limit of 300 ms");
    }
    CHECK(late.failed().first_failure);
    CHECK(std::string(late.what()).find("stopped after its time limit of 300 ms") !=
          std::string::npos);
}

TEST_CASE("time limit: the failure of a late worker stops the others") {
    const leak_guard guard;
    asio::io_context io;
    ready up(io.get_executor());
    completed<cohort::group> started;
    cohort::async_spawn(io, sleeper(),
                        cohort::options(2).fd(up.child_end(), ready::number).worker_time_limit(1s),
                        started.into());
    run_out(io);
    auto group = started.take();
    completed<bool> joined;
    group.async_join(joined.into());
    run_out(io);
    CHECK(joined.threw<cohort::process_exited_exception>());
    for (const auto& one : group.outcomes())
        CHECK((is_late(one) || one.cause == cause::stopped));
    CHECK(std::ranges::any_of(group.outcomes(), is_late));
}

TEST_CASE("time limit: late functions of every start method have failed") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        const auto report = ended(
            cohort::function<wait_for_token>(),
            by(method, 2).on_failure(cohort::on_failure::keep_going).worker_time_limit(500ms));
        CHECK(std::ranges::all_of(report.outcomes, is_late));
        const auto killed = ended(cohort::function<ignore_term>(),
                                  by(method, 1).grace_period(50ms).worker_time_limit(500ms));
        CHECK(is_late(killed.outcomes.at(0)));
    }
}

TEST_CASE("time limit: a worker that fails when its limit comes was not stopped") {
    const leak_guard guard;
    for (const auto limit : {1ms, 2ms, 3ms, 4ms, 6ms}) {
        const auto report =
            thrown_by<cohort::process_exited_exception>(
                cohort::command("false"), cohort::options(how_many(200, 40))
                                              .at_once(8)
                                              .worker_time_limit(limit)
                                              .on_failure(cohort::on_failure::keep_going))
                .outcomes();
        for (const auto& one : report) {
            CAPTURE(one.note());
            CHECK((one.cause == cause::exited || one.cause == cause::timed_out));
        }
    }
}

TEST_CASE("time limit: a worker's limit of zero, and one without end") {
    const leak_guard guard;
    const auto none =
        ended(sleeping(),
              cohort::options(20).worker_time_limit(0s).on_failure(cohort::on_failure::keep_going));
    CHECK(std::ranges::all_of(none.outcomes, is_late));
    CHECK(ended(cohort::command("true"),
                cohort::options(2).worker_time_limit(std::chrono::hours::max()))
              .success());
}

TEST_CASE("time limit: a late worker that hangs in the kernel is given up, and the others run on") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    const auto silent = mount_or_skip(directory.path());
    if (!silent)
        return;
    const auto file = directory.file("x");
    const auto hang_or_sleep = [file](int index) {
        return index == 0 ? cohort::command("cat", file) : sleeping();
    };
    const auto report =
        ended(cohort::command_for(hang_or_sleep), cohort::options(2)
                                                      .on_failure(cohort::on_failure::keep_going)
                                                      .worker_time_limit(500ms)
                                                      .grace_period(20ms)
                                                      .kill_timeout(20ms));
    REQUIRE(report.outcomes.size() == 2);
    CHECK(report.outcomes[0].cause == cause::unkillable);
    CHECK(report.outcomes[0].note().starts_with("stopped after its time limit of 500 ms"));
    CHECK(is_late(report.outcomes[1]));
    CHECK(std::ranges::any_of(report.outcomes, &cohort::outcome::first_failure));
}

TEST_CASE("time limit: workers that are given up at the limit are told to have reached it") {
    have_server();
    const leak_guard guard;
    for (const auto grace : {0ms, 20ms}) {
        const auto late =
            time_out(cohort::command("sh", "-c", "trap '' TERM; sleep 1000; :"),
                     cohort::options(3).time_limit(300ms).grace_period(grace).kill_timeout(0ms));
        REQUIRE(late.outcomes().size() == 3);
        for (const auto& one : late.outcomes()) {
            CHECK(one.cause == cause::unkillable);
            CHECK(one.note() == "stopped after its group's time limit of 300 ms");
            CHECK_FALSE(one.first_failure);
        }
    }
}

TEST_CASE("time limit: negative limits, and those that are no number, are refused") {
    CHECK_THROWS_AS(cohort::options(1).time_limit(-1s), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(1).worker_time_limit(-1s), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(1).time_limit(std::chrono::duration<double>(NAN)),
                    std::invalid_argument);
}

}  // namespace time_limit_test
