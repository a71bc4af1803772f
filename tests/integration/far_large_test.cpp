// SPDX-License-Identifier: BSL-1.0
// What workers on hosts leave may be large.
#include "far_support.hpp"
#include "group_test.hpp"
#include "pool_support.hpp"
#include "sanitizers.hpp"
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

const int much = how_many(100'000'000, 30'000'000);

/// Returns a large text when it has SIGUSR1.
std::string returns_much(int, std::string path) {
    wait_for_go(SIGUSR1, [&] { say_ready_at(path); });
    return std::string(static_cast<std::size_t>(much), 'x');
}

}  // namespace

GROUP_TEST("far large: an error's text of 1 MB is told whole") {
    const auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha"));
    auto group =
        co_await cohort::spawn(cohort::function<raises>(), cohort::options(1).on(machines));
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(std::string(error.what()).find(long_text()) != std::string::npos);
}

GROUP_TEST("far large: local groups keep their time limits while a large result comes") {
    // A busy machine may take long for a beat beside that.
    const auto machines =
        co_await cohort::reach(nearby_hosts().hosts("alpha").host_timeout(60s));
    ready_by_path up(executor);
    auto group = co_await cohort::spawn(cohort::function<returns_much>(up.path()),
                                        cohort::options(1).on(machines));
    co_await up.wait(1);
    completed<bool> joined;
    group.async_join(joined.into());
    group.signal(SIGUSR1);
    do {
        // On a busy machine it may be late before its worker has started.
        const auto hanging = cohort::options(1).time_limit(50ms);
        const auto late = co_await failure_of<cohort::group_timed_out>(
            cohort::run(cohort::command("sleep", "1000"), hanging));
        for (const auto& worker : late.outcomes())
            CHECK(worker.cause == cause::timed_out);
    } while (!joined.done());
    CHECK(joined.well());
    CHECK(group.outcomes()[0].result<std::string>().size() == static_cast<std::size_t>(much));
}

}  // namespace far_large_test
