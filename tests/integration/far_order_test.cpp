// SPDX-License-Identifier: BSL-1.0
// Groups on the same hosts, which start when they are awaited.
#include "far_support.hpp"
#include "group_test.hpp"

#include <cohort/cohort.hpp>

#include <utility>

namespace far_order_test {

using namespace cohort::test;

GROUP_TEST("far order: groups may start in another order than they were made") {
    const auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha", "beta"));
    auto first = cohort::spawn(cohort::command("true"), cohort::options(2).on(machines));
    auto second = cohort::spawn(cohort::command("true"), cohort::options(2).on(machines));
    auto later = co_await std::move(second);
    auto sooner = co_await std::move(first);
    CHECK(co_await later.join());
    CHECK(co_await sooner.join());
}

}  // namespace far_order_test
