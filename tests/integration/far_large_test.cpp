// SPDX-License-Identifier: BSL-1.0
// What workers on hosts leave may be large.
#include "far_support.hpp"
#include "group_test.hpp"
#include "pool_support.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <asio/cancellation_signal.hpp>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>

namespace far_large_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;

namespace {

std::string long_text() {
    std::string text;
    while (text.size() < 1'000'000)
        text += "line " + std::to_string(text.size()) + "\n";
    return text + "the last line";
}

void raises(int) { throw std::runtime_error(long_text()); }

/// Returns 100 MB when it has SIGUSR1.
std::string returns_much(int, std::string path) {
    wait_for_go(SIGUSR1, [&] { say_ready_at(path); });
    return std::string(100'000'000, 'x');
}

}  // namespace

GROUP_TEST("far large: an error's text of 1 MB is told whole") {
    const auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha"));
    auto group =
        co_await cohort::spawn(cohort::function<raises>(), cohort::options(1).on(machines));
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(std::string(error.what()).find(long_text()) != std::string::npos);
}

GROUP_TEST("far large: local groups keep their time limits while a result of 100 MB comes") {
    const auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha"));
    ready_by_path up(executor);
    auto group = co_await cohort::spawn(cohort::function<returns_much>(up.path()),
                                        cohort::options(1).on(machines));
    co_await up.wait(1);
    completed<bool> joined;
    group.async_join(joined.into());
    group.signal(SIGUSR1);
    do {
        const auto hanging = cohort::options(1).time_limit(50ms);
        auto local = co_await cohort::spawn(cohort::command("sleep", "1000"), hanging);
        const auto late = co_await failure<cohort::group_timed_out>(local);
        CHECK(late.outcomes()[0].cause == cause::timed_out);
    } while (!joined.done());
    CHECK(joined.well());
    CHECK(group.outcomes()[0].result<std::string>().size() == 100'000'000);
}

}  // namespace far_large_test
