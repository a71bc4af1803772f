// SPDX-License-Identifier: BSL-1.0
// Helpers that are stopped by SIGSTOP before they execute, so that their start would never end.
#include "injected_failure.hpp"
#include "one_start.hpp"
#include "protocol/order/order_writer.hpp"
#include "reporter.hpp"
#include "start/exec/clone.hpp"
#include "start/exec/exec.hpp"

#include <atomic>
#include <chrono>
#include <csignal>

#include <sys/syscall.h>
#include <unistd.h>

namespace start_limit_test {

using namespace cohort;
using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

enum class end { stops, executes };

/// The order of a program that holds `held` from before it stops itself.
protocol::order_block order_that(end how, int held) {
    protocol::order_writer order;
    order.add_candidate("/bin/true");
    order.add_argument("true");
    order.place(9, held);
    order.head.own_session = 1;
    if (how == end::stops)  // 0: its own process group
        order.call("nice", "kill", SYS_kill, {0, SIGSTOP});
    return order.finish();
}

/// Starts a detached program, and reaps the process between.
std::error_code start_detached(start::start_tier tier, end how, int held,
                               std::chrono::milliseconds longest) {
    auto order = order_that(how, held);
    base::unique_fd intermediate;
    const auto error = start::start_detached(order, tier, longest, intermediate);
    if (intermediate)
        base::reap_when_ended(intermediate.get());
    return error;
}

}  // namespace

TEST_CASE("start limit: a child that is stopped before it executes is killed, and only then") {
    const no_leftovers guard;
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        on_starter([&] {
            std::atomic<int> slot{-1};
            auto order = order_that(end::stops, -1);
            const auto killed = start::start_by_exec(order, slot, way.tier, 50ms);
            CHECK(killed.failed == start::stage::setting);
            CHECK(killed.error == ETIMEDOUT);
            CHECK(await_exit(killed.pidfd.get()) == exit_status::from_signal(SIGKILL, false));

            auto quick = order_that(end::executes, -1);
            const auto made = start::start_by_exec(quick, slot, way.tier, 60s);
            CHECK(made.failed == start::stage::none);
            CHECK(await_exit(made.pidfd.get()).success());
        });
    }
}

TEST_CASE("start limit: a detached program that is stopped before it executes is killed") {
    const no_leftovers guard;
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        auto held = make_pipe();
        on_starter([&] {
            CHECK(start_detached(way.tier, end::stops, held.writer.get(), 50ms) ==
                  std::errc::timed_out);
            CHECK_FALSE(start_detached(way.tier, end::executes, held.writer.get(), 60s));
        });
        held.writer.reset();
        CHECK(await_event(held.reader.get(), 0));  // nobody lives who could hold it
    }
}

TEST_CASE("start limit: a process between that is stopped before it makes the program is killed") {
    const no_leftovers guard;
    bool allowed = true;
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        std::atomic<pid_t> starter = 0;
        asked_calls stopping(way.tier.clone3 ? SYS_clone3 : SYS_clone, [&](pid_t caller) {
            return caller == starter ? 0 : ::kill(caller, SIGSTOP);
        });
        on_starter([&] {
            starter = ::gettid();
            allowed = allowed && stopping.begin();
            if (allowed)
                CHECK(start_detached(way.tier, end::executes, -1, 50ms) == std::errc::timed_out);
        });
    }
    if (!allowed)
        skip(no_injection);
}

}  // namespace start_limit_test
