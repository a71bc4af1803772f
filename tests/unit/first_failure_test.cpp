// SPDX-License-Identifier: BSL-1.0
#include "group/lifecycle/verdict.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

namespace first_failure_test {

using namespace cohort::groups;
using namespace std::chrono_literals;
using cohort::cause;

namespace {

time_point at(int second) { return time_point{} + 1h + std::chrono::seconds(second); }

verdict failure_at(int second) { return {cause::exited, false, false, at(second), ""}; }
verdict victim_at(int second) { return {cause::stopped, false, true, at(second), ""}; }
verdict success_at(int second) { return {cause::returned, true, false, at(second), ""}; }

int first_of(std::vector<verdict> verdicts) { return first_failure(verdicts); }

}  // namespace

TEST_CASE("first failure: it is the earliest in time, not in index") {
    CHECK(first_of({failure_at(30), failure_at(20), failure_at(25)}) == 1);
    CHECK(first_of({failure_at(30), failure_at(40), failure_at(29)}) == 2);
}

TEST_CASE("first failure: of those at the same instant it is the one of the lower index") {
    CHECK(first_of({success_at(1), failure_at(30), failure_at(30)}) == 1);
    CHECK(first_of({failure_at(40), failure_at(30), failure_at(30)}) == 1);
}

TEST_CASE("first failure: it is neither a victim nor a success") {
    CHECK(first_of({victim_at(1), success_at(2), failure_at(30)}) == 2);
    CHECK(first_of({victim_at(1), success_at(2)}) == -1);
    CHECK(first_of({}) == -1);
}

}  // namespace first_failure_test

