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

// A worker dies, so its connection closes, and its peers fail of that before the kernel tells of
// the death.
TEST_CASE("first failure: a death that no worker causes comes before what a peer may have caused") {
    using enum verdict::origin;
    const auto from = [](verdict::origin origin, int second) {
        auto v = failure_at(second);
        v.from = origin;
        return v;
    };
    struct row {
        verdict::origin origins[3];
        int seconds[3];
        int first;
    };
    const row table[] = {
        {{perhaps_another, not_another, perhaps_another}, {1, 2, 3}, 1},
        {{perhaps_another, not_another, not_another}, {1, 3, 2}, 2},
        {{perhaps_another, unknown, perhaps_another}, {1, 2, 3}, 0},
        {{perhaps_another, unknown, not_another}, {1, 2, 3}, 1},
        {{perhaps_another, perhaps_another, perhaps_another}, {2, 1, 3}, 1},
        {{unknown, not_another, perhaps_another}, {2, 1, 3}, 1},
    };
    for (const auto& [origins, seconds, first] : table) {
        std::vector<verdict> verdicts;
        for (int i = 0; i < 3; ++i)
            verdicts.push_back(from(origins[i], seconds[i]));
        CAPTURE(&origins - &table[0].origins);
        CHECK(first_failure(verdicts) == first);
    }
    auto victim = from(not_another, 2);
    victim.victim = true;
    const std::vector<verdict> stopped{from(perhaps_another, 1), victim};
    CHECK(first_failure(stopped) == 0);
    CHECK(why_first(stopped, 0).empty());
    CHECK(why_first({&stopped[1], 1}, 0).empty());  // a group whose failures are all victims
    const std::vector<verdict> noticed{from(perhaps_another, 1), from(not_another, 2)};
    CHECK(why_first(noticed, 1) == "its death was seen 1000.0 ms after worker 0 had failed, which "
                                   "has probably noticed it");
}

}  // namespace first_failure_test
