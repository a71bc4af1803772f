// SPDX-License-Identifier: BSL-1.0
#include "output/lines/capture.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace run_pool_test {

using cohort::output::run_pool;

TEST_CASE("run pool: the memory of a large run is used again, and the run is empty") {
    const auto pool = std::make_shared<run_pool>();
    auto run = pool->make(60'000);
    run->text.assign(60'000, 'x');
    run->lines.push_back({60'000, 0, true});
    run->host = std::make_shared<const std::string>("node03");
    const auto* const memory = run->text.data();
    run.reset();
    const auto next = pool->make(60'000);
    CHECK(next->text.empty());
    CHECK(next->lines.empty());
    CHECK(next->host == nullptr);
    CHECK(next->text.capacity() >= 60'000);
    CHECK(next->text.data() == memory);
}

TEST_CASE("run pool: a run of little text gets no large memory") {
    const auto pool = std::make_shared<run_pool>();
    auto large = pool->make(60'000);
    large->text.assign(60'000, 'x');
    large.reset();
    CHECK(pool->make(100)->text.capacity() < 1000);
    CHECK(pool->make(60'000)->text.capacity() >= 60'000);
}

TEST_CASE("run pool: what many short lines need in a run is not kept") {
    const auto pool = std::make_shared<run_pool>();
    auto run = pool->make(60'000);
    run->text.assign(60'000, '\n');
    run->lines.resize(60'000);
    run.reset();
    CHECK(pool->make(60'000)->text.capacity() < 1000);
}

TEST_CASE("run pool: a run may live longer than its pool") {
    auto pool = std::make_shared<run_pool>();
    auto run = pool->make(60'000);
    run->text.assign(60'000, 'x');
    pool.reset();
    CHECK(run->text.size() == 60'000);
}

}  // namespace run_pool_test
