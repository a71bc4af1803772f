// SPDX-License-Identifier: BSL-1.0
// Groups whose workers run on several hosts: each is reached by a command of this machine.
#include "far_support.hpp"
#include "group_test.hpp"
#include "pool_support.hpp"
#include "sanitizers.hpp"
#include "scratch.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <asio/cancellation_signal.hpp>
#include <asio/use_future.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace far_groups_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;
using words = std::vector<std::string>;

namespace {

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "-" : value;
}

/// What a worker is told of its place.
words place(int index) {
    using namespace cohort::this_worker;
    return {
        std::to_string(index),        std::to_string(size()),       std::to_string(local_index()),
        std::to_string(local_size()), std::string(host()),          variable("RANK"),
        variable("WORLD_SIZE"),       variable("LOCAL_RANK"),       variable("LOCAL_WORLD_SIZE"),
        variable("GROUP_RANK"),       variable("GROUP_WORLD_SIZE"), variable("MASTER_ADDR"),
        variable("MASTER_PORT")};
}

void third_raises(int index) {
    if (index == 3)
        throw std::runtime_error("no shard 3");
    sleep_until_killed();
}

std::string large(int) { return std::string(10'000'000, 'x'); }

void until_stopped(int, const std::string& ready) {
    const auto token = cohort::this_worker::stop_token();
    say_ready_at(ready);
    wait_on_token(token);
}

[[noreturn]] void ignore_the_stop(int, const std::string& ready) {
    std::signal(SIGTERM, SIG_IGN);
    say_ready_at(ready);
    sleep_until_killed();
}

asio::awaitable<cohort::hosts> two_hosts() {
    co_return co_await cohort::reach(nearby_hosts().hosts("alpha", "beta"));
}

cohort::command sleeping() { return cohort::command("sleep", "1000"); }

words hosts_of(const cohort::group& group) {
    words found;
    for (const auto& one : group.outcomes())
        found.push_back(one.host);
    return found;
}

/// Why a group is refused.
template <class Work>
std::string refusal(Work work, const cohort::options& how) {
    try {
        (void)cohort::spawn(std::move(work), how, asio::use_future).get();
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "not refused";
}

}  // namespace

GROUP_TEST("far groups: functions know their place, and their results come back") {
    const auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha", "beta").port(4711));
    auto group = co_await cohort::spawn(cohort::function<place>(), cohort::options(3).on(machines));
    CHECK(co_await group.join(60s));
    REQUIRE(group.outcomes().size() == 3);
    const auto of = [&](int index) {
        std::string all;
        for (const auto& word :
             group.outcomes().at(static_cast<std::size_t>(index)).result<words>())
            all += word + " ";
        return all;
    };
    CHECK(of(0) == "0 3 0 2 alpha 0 3 0 2 0 2 alpha 4711 ");
    CHECK(of(1) == "1 3 1 2 alpha 1 3 1 2 0 2 alpha 4711 ");
    CHECK(of(2) == "2 3 0 1 beta 2 3 0 1 1 2 alpha 4711 ");
    CHECK(hosts_of(group) == words{"alpha", "alpha", "beta"});
    const auto report = co_await group.wait();
    CHECK(report.hosts == words{"alpha", "beta"});
    CHECK(report.success());
}

GROUP_TEST("far groups: commands have the variables, and those of the user win") {
    const auto machines = co_await two_hosts();
    const scratch_directory files;
    const auto path = files.path() + "/out";
    const auto report = co_await cohort::run(
        cohort::command("sh", "-c",
                        "echo $RANK $WORLD_SIZE $LOCAL_RANK $GROUP_RANK $MASTER_ADDR "
                        "$COHORT_INDEX $COHORT_SIZE $COHORT_HOST >> " +
                            path + ".$RANK")
            .env("MASTER_ADDR", "mine"),
        cohort::options().per_host(1).on(machines));
    CHECK(report.outcomes.size() == 2);
    CHECK(read_file(path + ".0") == "0 2 0 0 mine 0 2 alpha\n");
    CHECK(read_file(path + ".1") == "1 2 0 1 mine 1 2 beta\n");
}

GROUP_TEST("far groups: the first failure is thrown with its trace and host, the others stop") {
    const auto machines = co_await two_hosts();
    auto group =
        co_await cohort::spawn(cohort::function<third_raises>(), cohort::options(4).on(machines));
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(error.error_index() == 3);
    const std::string text = error.what();
    CHECK(text.find("-- Process 3 (beta) terminated with the following error:") !=
          std::string::npos);
    CHECK(text.find("std::runtime_error: no shard 3") != std::string::npos);
    if (!under_tsan)  // with it, to find names may take longer than it may
        CHECK(text.find("third_raises") != std::string::npos);
    REQUIRE(error.outcomes().size() == 4);
    for (int index = 0; index < 3; ++index)
        CHECK(error.outcomes()[static_cast<std::size_t>(index)].cause == cause::stopped);
    CHECK(group.alive() == 0);
}

GROUP_TEST("far groups: pids are the hosts', and signals reach one worker or all") {
    const auto machines = co_await two_hosts();
    auto group = co_await cohort::spawn(
        sleeping(), cohort::options(4).on(machines).on_failure(cohort::on_failure::keep_going));
    REQUIRE(group.pids().size() == 4);
    CHECK(group.alive() == 4);
    for (const pid_t pid : group.pids())
        CHECK(pid > 0);
    group.signal(2, SIGINT);
    const auto first = co_await group.next();
    REQUIRE(first);
    CHECK(first->index == 2);
    CHECK(first->status.signal() == SIGINT);
    group.signal(SIGUSR1);
    const auto report = co_await group.wait();
    for (const int index : {0, 1, 3})
        CHECK(report.outcomes[static_cast<std::size_t>(index)].status.signal() == SIGUSR1);
}

GROUP_TEST("far groups: a stop is the ladder, climbed at the hosts") {
    const auto machines = co_await two_hosts();
    ready_by_path ready(executor);
    auto group = co_await cohort::spawn(cohort::function<until_stopped>(ready.path()),
                                        cohort::options(4).on(machines));
    co_await ready.wait(4);
    const auto report = co_await group.stop();
    CHECK(report.success());
    auto deaf = co_await cohort::spawn(cohort::function<ignore_the_stop>(ready.path()),
                                       cohort::options(4).on(machines).grace_period(10ms));
    co_await ready.wait(4);
    deaf.signal(0, SIGKILL);
    const auto error = co_await failure<cohort::process_exited_exception>(deaf);
    CHECK(error.error_index() == 0);
    for (const auto& one : error.outcomes())
        CHECK(one.status.signal() == SIGKILL);
}

GROUP_TEST("far groups: a start is all or none, also among hosts") {
    const auto machines = co_await two_hosts();
    const auto missing = [](int index) {
        return index == 3 ? cohort::command("/nowhere/program") : sleeping();
    };
    const auto error = co_await failure_of<cohort::spawn_error>(
        cohort::spawn(cohort::command_for(missing), cohort::options(4).on(machines)));
    CHECK(error.error_index() == 3);
    CHECK(error.stage() == "exec");
    CHECK(std::string(error.what()).find("on beta") != std::string::npos);
    CHECK(std::string(error.what()).find("(worker 3)") != std::string::npos);
}

GROUP_TEST("far groups: what can't leave this machine is refused by name") {
    const auto machines = co_await two_hosts();
    const auto on = [&](int n) { return cohort::options(n).on(machines); };
    CHECK(refusal(cohort::closure([](int) {}), on(2).start_method(cohort::start_method::fork)) ==
          "worker 0 runs on alpha: a closure does not leave its machine");
    CHECK(refusal(sleeping(), on(2).fd(0, 9)) ==
          "worker 0 runs on alpha: descriptor 9, given by fd(), does not leave its machine");
    CHECK(refusal(sleeping(), on(2).stdin_from(cohort::inherit())) ==
          "worker 0 runs on alpha: standard input, given by inherit(), does not leave its machine");
    for (const int workers : {1, 2})
        CHECK(refusal(sleeping(),
                      on(workers).restart(cohort::restarts(1).scope(cohort::restart_scope::all)))
                  .find("restart_scope::all") != std::string::npos);
    CHECK(refusal(sleeping(), on(3).per_host(2)) ==
          "cohort: 2 workers on each of 2 hosts are 4, but nprocs is 3");
    CHECK(refusal(sleeping(), cohort::options().per_host(2)) ==
          "cohort: per_host: no hosts were given by on()");
    CHECK_THROWS_AS(cohort::options().per_host(0), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options().on(cohort::hosts()), std::logic_error);
}

GROUP_TEST("far groups: fewer workers than hosts, and none") {
    const auto machines = co_await two_hosts();
    auto one = co_await cohort::spawn(cohort::function<place>(), cohort::options(1).on(machines));
    CHECK(co_await one.join(60s));
    CHECK(one.outcomes().at(0).result<words>()[10] == "1");  // GROUP_WORLD_SIZE
    const auto empty = co_await cohort::run(sleeping(), cohort::options(0).on(machines).name("a"));
    CHECK(empty.name == "a");
    auto none = co_await cohort::spawn(sleeping(), cohort::options(0).on(machines));
    CHECK(co_await none.join(60s));
}

GROUP_TEST("far groups: at the group's time limit all are stopped, and join says so") {
    const auto machines = co_await two_hosts();
    // Doubled until the group of a slow machine has started in time.
    for (auto limit = 500ms; limit < 1min; limit *= 2) {
        cohort::group group;
        try {
            group = co_await cohort::spawn(sleeping(),
                                           cohort::options(4).on(machines).time_limit(limit));
        } catch (const cohort::group_timed_out&) {
            continue;
        }
        const auto error = co_await failure<cohort::group_timed_out>(group);
        CHECK(error.limit() == limit);
        REQUIRE(error.outcomes().size() == 4);
        for (const auto& one : error.outcomes())
            CHECK(one.cause == cause::timed_out);
        co_return;
    }
    FAIL("no group has started in time");
}

GROUP_TEST("far groups: workers start again at their host, and their history is told") {
    const auto machines = co_await two_hosts();
    auto group =
        co_await cohort::spawn(cohort::command("sh", "-c", "exit $((COHORT_ATTEMPT < 2))"),
                               cohort::options(2).on(machines).restart(cohort::restarts(3)));
    int told = 0;
    while (const auto one = co_await group.next()) {
        ++told;
        CHECK(one->restarted == (one->attempt < 2));
    }
    CHECK(told == 6);
    CHECK(co_await group.join());
    for (const auto& one : group.outcomes()) {
        CHECK(one.attempt == 2);
        CHECK(one.history.size() == 3);
    }
}

GROUP_TEST("far groups: at_once is divided among the hosts") {
    const auto machines = co_await two_hosts();
    const auto report =
        co_await cohort::run(cohort::command("true"), cohort::options(10).on(machines).at_once(2));
    CHECK(report.success());
    CHECK(report.outcomes.size() == 10);
}

GROUP_TEST("far groups: large results come back, and a local group goes on beside them") {
    const auto machines = co_await two_hosts();
    auto group = co_await cohort::spawn(cohort::function<large>(), cohort::options(4).on(machines));
    const auto report = co_await cohort::run(cohort::command("true"));
    CHECK(report.success());
    CHECK(co_await group.join(60s));
    for (const auto& one : group.outcomes())
        CHECK(one.result<std::string>().size() == 10'000'000);
}

GROUP_TEST("far groups: captured text comes with the outcome") {
    const auto machines = co_await two_hosts();
    const auto report = co_await cohort::run(
        cohort::command("sh", "-c", "echo out $RANK; echo err $RANK >&2"),
        cohort::options(2).on(machines).stdout_to(cohort::capture()).stderr_to(cohort::capture()));
    CHECK(report.outcomes[1].out.text() == "out 1\n");
    CHECK(report.outcomes[0].err.text() == "err 0\n");
}

GROUP_TEST("far groups: a cancelled spawn, a cancelled join and a dropped group leave nothing") {
    const auto machines = co_await two_hosts();
    { const auto dropped = co_await cohort::spawn(sleeping(), cohort::options(4).on(machines)); }
    completed<cohort::group> ended;
    asio::cancellation_signal stop;
    cohort::async_spawn(executor, sleeping(), cohort::options(4).on(machines), ended.into(stop));
    stop.emit(asio::cancellation_type::terminal);
    co_await until(executor, [&] { return ended.done(); });
    CHECK(ended.aborted());
    // Workers of the dropped group may still be ending.
    co_await until(executor, [] {
        for (const auto& process : descendants_of(::getpid(), all_processes()))
            if (read_proc(process.pid, "comm") == "sleep\n")
                return false;
        return true;
    });
}

GROUP_TEST("far groups: leave() stops the groups first, by their ladder") {
    const auto machines = co_await two_hosts();
    ready_by_path ready(executor);
    auto group = co_await cohort::spawn(cohort::function<until_stopped>(ready.path()),
                                        cohort::options(2).on(machines));
    co_await ready.wait(2);
    co_await machines.leave();
    const auto report = co_await group.wait();
    CHECK(report.success());
    CHECK(machines.alive().empty());
    auto start = cohort::spawn(sleeping(), cohort::options(2).on(machines));
    CHECK_THROWS_WITH_AS((void)co_await std::move(start),
                         "host alpha: it was left (nothing was started)", cohort::host_lost);
}

GROUP_TEST("far groups: a group keeps its hosts when their handle is dropped") {
    auto machines = co_await two_hosts();
    ready_by_path ready(executor);
    auto group = co_await cohort::spawn(cohort::function<until_stopped>(ready.path()),
                                        cohort::options(2).on(machines));
    machines = cohort::hosts();
    co_await ready.wait(2);
    CHECK(agents().size() == 2);
    const auto report = co_await group.stop();
    CHECK(report.success());
    group = cohort::group();
    co_await until(executor, [] { return agents().empty(); });
}

}  // namespace far_groups_test
