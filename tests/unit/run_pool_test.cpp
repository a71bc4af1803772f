// SPDX-License-Identifier: BSL-1.0
#include "lines/run_pool.hpp"

#include <doctest/doctest.h>

#include <memory>

namespace run_pool_test {

using cohort::output::run_pool;

TEST_CASE("run pool: the memory of a large run is used again, and the run is empty") {
    const auto pool = std::make_shared<run_pool>();
    auto run = pool->make();
    run->text.assign(60'000, 'x');
    run->lines.push_back({60'000, 0, true});
    const auto* const memory = run->text.data();
    run.reset();
    const auto next = pool->make();
    CHECK(next->text.empty());
    CHECK(next->lines.empty());
    CHECK(next->text.capacity() >= 60'000);
    CHECK(next->text.data() == memory);
}

TEST_CASE("run pool: a run may live longer than its pool") {
    auto pool = std::make_shared<run_pool>();
    auto run = pool->make();
    run->text.assign(60'000, 'x');
    pool.reset();
    CHECK(run->text.size() == 60'000);
}

}  // namespace run_pool_test
