// SPDX-License-Identifier: BSL-1.0
// Groups on the same hosts, which start when they are awaited.
#include "far_support.hpp"
#include "group_test.hpp"
#include "pool_support.hpp"

#include <cohort/cohort.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>

#include <chrono>
#include <exception>
#include <utility>

namespace far_order_test {

using namespace cohort::test;
using namespace std::chrono_literals;

GROUP_TEST("far order: groups may start in another order than they were made") {
    const auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha", "beta"));
    auto first = cohort::spawn(cohort::command("true"), cohort::options(2).on(machines));
    auto second = cohort::spawn(cohort::command("true"), cohort::options(2).on(machines));
    auto later = co_await std::move(second);
    auto sooner = co_await std::move(first);
    CHECK(co_await later.join());
    CHECK(co_await sooner.join());
}

GROUP_TEST("far order: a stop that comes while an agent starts its workers is not lost") {
    const auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha", "beta"));
    // A stop that is lost would let the workers live for their grace period.
    const auto how = cohort::options(2).on(machines).grace_period(1h);
    for (int round = 0; round < 40; ++round) {
        bool has_ended = false;
        asio::cancellation_signal stop;
        const auto ended = [&](const std::exception_ptr&, const cohort::group&) {
            has_ended = true;
        };
        cohort::async_spawn(executor, cohort::command("sleep", "1000"), how,
                            asio::bind_cancellation_slot(stop.slot(), ended));
        stop.emit(asio::cancellation_type::terminal);
        co_await until(executor, [&] { return has_ended; });
    }
}

}  // namespace far_order_test
