// SPDX-License-Identifier: BSL-1.0
// options::at_once: groups of which only some workers run at a time.
#include "live_support.hpp"
#include "methods.hpp"
#include "procfs.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/resource.h>

namespace batch_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;

namespace {

int double_of(int index) { return 2 * index; }

void note_run(int index, const std::string& directory) {
    const std::ofstream made(directory + "/" + std::to_string(index));
}

/// Notes that one of this batch's workers runs, by a line in a file of its own; how many do.
cohort::command counted(const std::string& directory) {
    return cohort::command("sh", "-c",
                           "touch run-$COHORT_INDEX; ls | grep -c '^run-' > seen-$COHORT_INDEX; rm "
                           "run-$COHORT_INDEX")
        .working_directory(directory);
}

template <class Work>
asio::awaitable<void> stop_some_time(cohort::report& into, Work work, cohort::options how,
                                     std::chrono::microseconds later) {
    auto group = co_await cohort::spawn(std::move(work), std::move(how));
    asio::steady_timer pause(co_await asio::this_coro::executor, later);
    co_await pause.async_wait(asio::use_awaitable);
    into = co_await group.stop();
}

/// The most workers that any of them saw at a time, itself included.
int most_seen(const std::string& directory, int workers) {
    int most = 0;
    for (int index = 0; index < workers; ++index) {
        std::ifstream seen(directory + "/seen-" + std::to_string(index));
        int count = 0;
        seen >> count;
        REQUIRE(count > 0);
        most = std::max(most, count);
    }
    return most;
}

}  // namespace

TEST_CASE("batch: never more workers run than may, and all of them end") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    const auto report = ended(counted(directory.path()), cohort::options(60).at_once(4));
    CHECK(report.success());
    REQUIRE(report.outcomes.size() == 60);
    CHECK(most_seen(directory.path(), 60) <= 4);
    // In the order of their index: no worker starts before the one four places ahead has begun.
    for (std::size_t index = 1; index < 60; ++index)
        CHECK(report.outcomes[index].started >= report.outcomes[index - 1].started);
}

TEST_CASE("batch: functions of every start method give their results") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        const auto report =
            ended(cohort::function<double_of>(), by(method, 30).at_once(3).stack_on_stop(true));
        REQUIRE(report.outcomes.size() == 30);
        for (int index = 0; index < 30; ++index)
            CHECK(report.outcomes[static_cast<std::size_t>(index)].result<int>() == 2 * index);
    }
}

TEST_CASE("batch: spawn ends when the first have started, and the group says how many wait") {
    const leak_guard guard;
    asio::io_context io;
    const gate hold;
    ready up(io.get_executor());
    completed<cohort::group> started;
    cohort::async_spawn(io, gated(),
                        cohort::options(5)
                            .at_once(2)
                            .fd(up.child_end(), ready::number)
                            .fd(hold.child_end(), gate::number),
                        started.into());
    run_out(io);
    auto group = started.take();
    run_coroutine(io, up.wait(2));
    CHECK(group.size() == 5);
    CHECK(group.alive() == 2);
    CHECK(group.waiting() == 3);
    CHECK(group.pids()[4] == 0);
    completed<cohort::report> stopped;
    group.async_stop(stopped.into());
    run_out(io);
    const auto report = stopped.take();
    REQUIRE(report.outcomes.size() == 5);
    CHECK(group.alive() == 0);
    CHECK(group.waiting() == 0);
    for (std::size_t index = 0; index < 5; ++index) {
        CHECK(report.outcomes[index].cause == cause::stopped);
        CHECK_FALSE(report.outcomes[index].success());
        CHECK((report.outcomes[index].pid == 0) == (index >= 2));
    }
}

TEST_CASE("batch: a failure stops it, and those that wait never start") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto how = cohort::options(2000).at_once(2).working_directory(directory.path());
    const auto failed = thrown_by<cohort::process_exited_exception>(
        cohort::command("sh", "-c", "touch $COHORT_INDEX; [ $COHORT_INDEX != 5 ]"), how);
    CHECK(failed.error_index() == 5);
    REQUIRE(failed.outcomes().size() == 2000);
    // Until the failure is judged, a few others start.
    for (int index = 1000; index < 2000; ++index) {
        CHECK(failed.outcomes()[static_cast<std::size_t>(index)].pid == 0);
        CHECK_FALSE(std::filesystem::exists(directory.file(std::to_string(index))));
    }
}

TEST_CASE("batch: with keep_going all run, and the first failure is thrown") {
    const leak_guard guard;
    const auto failed = thrown_by<cohort::process_exited_exception>(
        cohort::command("sh", "-c", "[ $((COHORT_INDEX % 7)) != 3 ]"),
        cohort::options(40).at_once(4).on_failure(cohort::on_failure::keep_going));
    int failures = 0;
    for (const auto& one : failed.outcomes()) {
        CHECK(one.pid != 0);
        failures += one.success() ? 0 : 1;
        CHECK(one.success() == (one.index % 7 != 3));
    }
    CHECK(failures == 6);
    CHECK(failed.failed().index % 7 == 3);
}

TEST_CASE("batch: a later start that fails is that worker's failure, with its stage") {
    const leak_guard guard;
    const auto make = [](int index) {
        return index == 7 ? cohort::command("cohort-no-such-program") : cohort::command("true");
    };
    const auto report =
        ended(cohort::command_for(make),
              cohort::options(20).at_once(3).on_failure(cohort::on_failure::keep_going));
    REQUIRE(report.outcomes.size() == 20);
    for (const auto& one : report.outcomes)
        CHECK(one.success() == (one.index != 7));
    const auto& failed = report.outcomes[7];
    CHECK(failed.cause == cause::not_started);
    CHECK(failed.pid == 0);
    CHECK(failed.first_failure);
    CHECK(failed.note() ==
          "exec(\"cohort-no-such-program\"): No such file or directory (stage \"exec\")");
    const auto thrown = thrown_by<cohort::process_exited_exception>(cohort::command_for(make),
                                                                    cohort::options(20).at_once(3));
    CHECK(thrown.error_index() == 7);
    CHECK(std::string(thrown.what()).starts_with("process 7 could not be started\nexec("));
}

TEST_CASE("batch: one of the first that can't be started fails the whole start") {
    const leak_guard guard;
    const auto failed =
        thrown_by<cohort::spawn_error>(cohort::command_for([](int index) {
                                           return index == 1
                                                      ? cohort::command("cohort-no-such-program")
                                                      : cohort::command("sleep", "1000");
                                       }),
                                       cohort::options(20).at_once(3));
    CHECK(failed.error_index() == 1);
}

TEST_CASE("batch: cancelled, dropped or late at any moment, nothing starts and nothing is left") {
    have_server();
    const leak_guard guard;
    const int rounds = under_asan || under_tsan ? 15 : 60;
    for (int round = 0; round < rounds; ++round) {
        asio::io_context io;
        asio::cancellation_signal cancel;
        completed<cohort::report> ran;
        const auto method = all_methods[static_cast<std::size_t>(round) % std::size(all_methods)];
        asio::co_spawn(io, cohort::run(cohort::function<double_of>(), by(method, 200).at_once(3)),
                       ran.into(cancel));
        const auto until = std::chrono::steady_clock::now() + round * 500us;
        while (std::chrono::steady_clock::now() < until)
            io.poll();
        cancel.emit(asio::cancellation_type::terminal);
        run_out(io);
        CHECK(ran.calls() == 1);
    }
    for (int round = 0; round < rounds; ++round)
        try {
            run_coroutine(run_whole(cohort::command("true"),
                                    cohort::options(500).at_once(3).time_limit(round * 500us)));
        } catch (const cohort::group_timed_out&) {
        }
}

TEST_CASE("batch: whoever has run has a pid, whenever the batch is stopped") {
    have_server();
    const leak_guard guard;
    for (const auto method : {cohort::start_method::spawn, cohort::start_method::fork,
                              cohort::start_method::forkserver})
        for (int round = 0; round < how_many(100, 20); ++round) {
            const scratch_directory directory;
            CAPTURE(round);
            cohort::report report;
            run_coroutine(stop_some_time(report, cohort::function<note_run>(directory.path()),
                                         cohort::options(300)
                                             .at_once(4)
                                             .start_method(method)
                                             .grace_period(generous_bound()),
                                         50us * (round * 7 % 100)));
            for (const auto& one : report.outcomes)
                if (std::filesystem::exists(directory.file(std::to_string(one.index)))) {
                    CHECK(one.pid != 0);
                    CHECK(one.status.signal() != SIGKILL);
                }
        }
}

TEST_CASE("batch: after a stop nobody waits, and what those were to do is told") {
    const leak_guard guard;
    const int count = under_asan || under_tsan ? 3'000 : 20'000;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command("sleep", "1000"), cohort::options(count).at_once(2),
                        started.into());
    run_out(io);
    auto group = started.take();
    CHECK(group.waiting() == count - 2);
    completed<cohort::report> stopped;
    group.async_stop(stopped.into());
    int least = count;
    int latest_rise = 0;
    while (!stopped.done()) {
        io.poll();
        io.restart();
        const int now = group.waiting();
        latest_rise = std::max(latest_rise, now - least);
        least = std::min(least, now);
    }
    CHECK(latest_rise == 0);
    CHECK(least == 0);
    const auto report = stopped.take();
    REQUIRE(report.outcomes.size() == static_cast<std::size_t>(count));
    CHECK(std::ranges::count(report.outcomes, "sleep 1000", &cohort::outcome::work) == count);
}

TEST_CASE("batch: a time limit reaches those that run and those that wait") {
    const leak_guard guard;
    const auto report =
        ended(cohort::command("sleep", "1000"), cohort::options(10).at_once(2).time_limit(500ms));
    REQUIRE(report.outcomes.size() == 10);
    for (const auto& one : report.outcomes)
        CHECK(one.cause == cause::timed_out);
    const auto each = ended(cohort::command("sleep", "1000"),
                            cohort::options(6).at_once(3).worker_time_limit(100ms).on_failure(
                                cohort::on_failure::keep_going));
    for (const auto& one : each.outcomes) {
        CHECK(one.cause == cause::timed_out);
        CHECK(one.pid != 0);
    }
}

TEST_CASE("batch: many workers run by eight at a time, and next tells each end once") {
    const leak_guard guard;
    const int count = how_many(2000, 300);
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command("true"), cohort::options(count).at_once(8),
                        started.into());
    run_out(io);
    auto group = started.take();
    std::vector<int> ends(static_cast<std::size_t>(count));
    run_coroutine(io, [](cohort::group& of, std::vector<int>& into) -> asio::awaitable<void> {
        while (const auto one = co_await of.next())
            ++into[static_cast<std::size_t>(one->index)];
    }(group, ends));
    CHECK(std::ranges::count(ends, 1) == count);
    CHECK(group.waiting() == 0);
}

TEST_CASE(
    "batch: a place is free when its worker has left nothing open, and alive counts processes") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command("true"),
                        cohort::options(60).at_once(1).output_to(cohort::capture()),
                        started.into());
    run_out(io);
    auto group = started.take();
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    int most = 0;
    while (!waited.done()) {
        io.run_one_for(100us);
        io.restart();
        most = std::max(most, group.alive());
    }
    CHECK(most <= 1);
    CHECK(waited.take().success());
}

namespace {

void meet(int, const cohort::barrier& all) { all.arrive_and_wait(); }

}  // namespace

TEST_CASE("batch: workers that never run at once can't share a barrier") {
    const leak_guard guard;
    const cohort::barrier all(2);
    CHECK_THROWS_AS(
        run_coroutine(run_whole(cohort::function<meet>(all), cohort::options(4).at_once(2))),
        std::invalid_argument);
    CHECK(ended(cohort::function<meet>(all), cohort::options(2).at_once(2)).success());
}

TEST_CASE("batch: less than one at a time is refused, and more than there are is all") {
    CHECK_THROWS_AS(cohort::options(3).at_once(0), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(3).at_once(-1), std::invalid_argument);
    const leak_guard guard;
    CHECK(ended(cohort::command("true"), cohort::options(3).at_once(9)).success());
    CHECK(ended(cohort::command("true"), cohort::options(0).at_once(9)).success());
}

}  // namespace batch_test
