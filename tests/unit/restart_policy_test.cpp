// SPDX-License-Identifier: BSL-1.0
// Whether a worker starts again, and after which pause.
#include "group/lifecycle/restart_policy.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace restart_policy_test {

using namespace std::chrono_literals;
using cohort::groups::restart_policy;
using settings = cohort::detail::restart_settings;
using duration = restart_policy::duration;

namespace {

restart_policy::time_point at(duration since) { return restart_policy::time_point(1000s + since); }

/// The end of an attempt that lived for no time.
restart_policy::end end_at(duration when, int index = 0) {
    return {index, at(when), at(when), 0.5};
}

settings most(int count) {
    settings how;
    how.most = count;
    return how;
}

settings backing_off(duration first, duration longest) {
    settings how = most(1000);
    how.first_pause = first;
    how.longest_pause = longest;
    return how;
}

}  // namespace

TEST_CASE("restart policy: without one nobody starts again") {
    restart_policy policy(std::nullopt);
    CHECK_FALSE(policy.is_on());
    CHECK_FALSE(policy.wants(false));
    CHECK(policy.next(end_at(0s)) == std::nullopt);
}

TEST_CASE("restart policy: a failure is followed by an attempt, any end if that is asked for") {
    restart_policy failures(most(1));
    CHECK(failures.wants(false));
    CHECK_FALSE(failures.wants(true));
    settings how = most(1);
    how.after = cohort::restart_on::always;
    CHECK(restart_policy(how).wants(true));
}

TEST_CASE("restart policy: each worker has its restarts, with scope all all workers together") {
    restart_policy each(most(2));
    for (const int index : {0, 1}) {
        CHECK(each.next(end_at(0s, index)) == 0s);
        CHECK(each.next(end_at(1h, index)) == 0s);
        CHECK(each.next(end_at(1000h, index)) == std::nullopt);
    }
    settings how = most(2);
    how.scope = cohort::restart_scope::all;
    restart_policy all(how);
    CHECK(all.next(end_at(0s, 0)) == 0s);
    CHECK(all.next(end_at(0s, 1)) == 0s);
    CHECK(all.next(end_at(0s, 2)) == std::nullopt);
    CHECK(restart_policy(most(0)).next(end_at(0s)) == std::nullopt);
}

TEST_CASE("restart policy: only restarts of the last span count") {
    settings how = most(2);
    how.within = 60s;
    restart_policy policy(how);
    CHECK(policy.next(end_at(0s)) == 0s);
    CHECK(policy.next(end_at(50s)) == 0s);
    CHECK(policy.next(end_at(59s)) == std::nullopt);
    CHECK(policy.next(end_at(60s)) == 0s);
    CHECK(policy.next(end_at(109s)) == std::nullopt);
    CHECK(policy.next(end_at(110s)) == 0s);
    how.within = duration::max();
    restart_policy ever(how);
    CHECK(ever.next(end_at(0s)) == 0s);
    CHECK(ever.next(end_at(1h)) == 0s);
    CHECK(ever.next(end_at(9999h)) == std::nullopt);
    how.within = 0s;
    restart_policy never(how);
    for (int i = 0; i < 10; ++i)
        CHECK(never.next(end_at(0s)) == 0s);
}

TEST_CASE("restart policy: pauses double up to the longest one") {
    restart_policy policy(backing_off(100ms, 1s));
    for (const auto pause : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms})
        CHECK(policy.next(end_at(0s)) == pause);
    restart_policy longest(backing_off(1s, duration::max()));
    duration before = 0s;
    for (int i = 0; i < 80; ++i) {
        const auto pause = *longest.next(end_at(0s));
        CHECK(pause >= before);
        before = pause;
    }
    CHECK(before == duration::max());
}

TEST_CASE("restart policy: after a life of the longest pause the first one comes again") {
    restart_policy policy(backing_off(100ms, 1s));
    CHECK(policy.next(end_at(0s)) == 100ms);
    CHECK(policy.next({0, at(0s), at(999ms), 0.5}) == 200ms);
    CHECK(policy.next({0, at(0s), at(1s), 0.5}) == 100ms);
    CHECK(policy.next({0, at(0s), at(1ms), 0.5}) == 200ms);
}

TEST_CASE("restart policy: chance makes pauses shorter and longer, never those that follow") {
    settings how = backing_off(100ms, 1s);
    how.jitter = 0.2;
    restart_policy policy(how);
    CHECK(policy.next({0, at(0s), at(0s), 0.0}) == 80ms);
    CHECK(policy.next({0, at(0s), at(0s), 0.5}) == 200ms);
    CHECK(policy.next({0, at(0s), at(0s), 1.0}) == 480ms);
    CHECK(policy.next({0, at(0s), at(0s), 0.25}) == 720ms);
    how = backing_off(duration::max(), duration::max());
    how.jitter = 1;
    restart_policy longest(how);
    CHECK(longest.next({0, at(0s), at(0s), 1.0}) == duration::max());
    CHECK(longest.next({0, at(0s), at(0s), 0.0}) == 0s);
}

}  // namespace restart_policy_test
