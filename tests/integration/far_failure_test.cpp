// SPDX-License-Identifier: BSL-1.0
// After the first failure no host starts a worker, and the first failure in time is thrown.
#include "far_support.hpp"
#include "group_test.hpp"
#include "pool_support.hpp"
#include "relay_support.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>

namespace far_failure_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;

namespace {

void fails_on_signal(int index, std::string path) {
    wait_for_go(SIGUSR1, [&] { say_ready_at(path); });
    throw std::runtime_error("worker " + std::to_string(index));
}

void first_fails_on_signal(int index, std::string path) {
    wait_for_go(SIGUSR1, [&] { say_ready_at(path); });
    if (index == 0)
        throw std::runtime_error("the first");
}

bool has_never_started(const cohort::outcome& worker) {
    return worker.cause == cause::stopped && worker.pid == 0;
}

}  // namespace

GROUP_TEST("far failure: no host starts a worker that waits in the notice period") {
    const auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha", "beta"));
    ready_by_path up(executor);
    const auto how = cohort::options(6).on(machines).at_once(2).notice_period(1h);
    auto group = co_await cohort::spawn(cohort::function<first_fails_on_signal>(up.path()), how);
    co_await up.wait(2);  // 0 on alpha, and 3 on beta
    group.signal(0, SIGUSR1);
    for (auto next = co_await group.next(); next->index != 0; next = co_await group.next())
        CHECK(has_never_started(*next));
    group.signal(3, SIGUSR1);  // its place is free then
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(error.error_index() == 0);
    for (const auto& worker : error.outcomes())
        if (worker.index == 3)
            CHECK(worker.success());
        else if (worker.index != 0)
            CHECK(has_never_started(worker));
}

GROUP_TEST("far failure: a host whose worker has failed starts none that waits") {
    const auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha"));
    ready_by_path up(executor);
    for (int round = 0; round < 5; ++round) {
        auto group = co_await cohort::spawn(cohort::function<first_fails_on_signal>(up.path()),
                                            cohort::options(3).on(machines).at_once(1));
        co_await up.wait(1);
        group.signal(0, SIGUSR1);
        const auto error = co_await failure<cohort::process_raised_exception>(group);
        CHECK(has_never_started(error.outcomes()[1]));
        CHECK(has_never_started(error.outcomes()[2]));
    }
}

GROUP_TEST("far failure: a notice period does not wait for what else a worker leaves") {
    relays all;
    const auto machines = co_await cohort::reach(all.launcher().hosts("alpha", "beta"));
    all.fault("alpha", "rate back 100");
    const auto how = cohort::options(2).on(machines).notice_period(1ms).stdout_to(
        cohort::capture().head(20'000'000));
    auto group = co_await cohort::spawn(
        cohort::command("sh", "-c", "[ $RANK = 0 ] || exec sleep 1000; seq 2000000; exit 3"), how);
    const auto other = co_await group.next();  // its outcome would come after some minutes else
    CHECK(other->index == 1);
    CHECK(other->cause == cause::stopped);
    all.fault("alpha", "rate back 0");
    CHECK((co_await group.next())->index == 0);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(error.error_index() == 0);
}

GROUP_TEST("far failure: the first of two is thrown also if its message takes longer") {
    relays all;
    const auto machines = co_await cohort::reach(
        all.launcher().hosts("alpha", "beta").host_timeout(60s));
    ready_by_path up(executor);
    const auto how = cohort::options(2).on(machines).on_failure(cohort::on_failure::keep_going);
    auto group = co_await cohort::spawn(cohort::function<fails_on_signal>(up.path()), how);
    co_await up.wait(2);
    const auto workers = group.pids();
    all.fault("alpha", "stop back");
    ::kill(workers[0], SIGUSR1);
    co_await until(executor, [&] { return !all_processes().contains(workers[0]); });
    ::kill(workers[1], SIGUSR1);
    CHECK((co_await group.next())->index == 1);
    all.fault("alpha", "go back");
    CHECK((co_await group.next())->index == 0);
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(error.error_index() == 0);
    CHECK(error.outcomes()[0].first_failure);
    CHECK(error.outcomes()[0].ended <= error.outcomes()[1].ended);
}

}  // namespace far_failure_test
