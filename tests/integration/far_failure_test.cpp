// SPDX-License-Identifier: BSL-1.0
// The first failure in time is thrown.
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

namespace {

/// Says that it is ready, and waits for SIGUSR1.
void await_signal(const std::string& path) {
    sigset_t go;
    ::sigemptyset(&go);
    ::sigaddset(&go, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &go, nullptr);
    say_ready_at(path);
    int got = 0;
    ::sigwait(&go, &got);
}

void fails_on_signal(int index, std::string path) {
    await_signal(path);
    throw std::runtime_error("worker " + std::to_string(index));
}

}  // namespace

GROUP_TEST("far failure: the first of two is thrown also if its message takes longer") {
    relays all;
    const auto machines = co_await cohort::reach(all.launcher().hosts("alpha", "beta"));
    ready_by_path up(executor);
    const auto how = cohort::options(2).on(machines).on_failure(cohort::on_failure::keep_going);
    auto group = co_await cohort::spawn(cohort::function<fails_on_signal>(up.path()), how);
    co_await up.wait(2);
    const auto workers = group.pids();
    all.fault("alpha", "delay back 1000");
    ::kill(workers[0], SIGUSR1);
    co_await until(executor, [&] { return !all_processes().contains(workers[0]); });
    ::kill(workers[1], SIGUSR1);
    CHECK((co_await group.next())->index == 1);
    CHECK((co_await group.next())->index == 0);
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(error.error_index() == 0);
    CHECK(error.outcomes()[0].first_failure);
    CHECK(error.outcomes()[0].ended <= error.outcomes()[1].ended);
}

}  // namespace far_failure_test
