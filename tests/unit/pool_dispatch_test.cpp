// SPDX-License-Identifier: BSL-1.0
// Which worker of a pool gets which call, and which workers there are.
#include "pool_stage.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace pool_dispatch_test {

using namespace cohort::test;

TEST_CASE("pool dispatch: a burst starts workers up to the size, and they end when idle") {
    stage on({.size = 8, .at_least = 1, .idle = 60s, .starts_at_once = 8});
    CHECK(on.live().size() == 1);
    for (int i = 0; i < 100; ++i)
        on.submit();
    CHECK(on.live().size() == 8);
    for (const auto& [w, slot] : std::map(on.live()))
        on.ready(w);
    while (!on.calls().empty())
        on.finish(on.calls().begin()->first);
    CHECK(on.all_ended());
    CHECK(on.machine.idle() == 8);
    CHECK(on.pass_to_deadline());
    for (const auto w : std::set(on.told_to_end()))
        on.die(w);
    CHECK(on.live().size() == 1);
    CHECK_FALSE(on.machine.deadline());
}

TEST_CASE("pool dispatch: the worker that was used last is taken first") {
    stage on({.size = 2, .at_least = 2});
    for (const auto& [w, slot] : std::map(on.live()))
        on.ready(w);
    on.submit();
    const auto used = on.calls().begin()->first;
    on.finish(used);
    on.submit();
    CHECK(on.calls().begin()->first == used);
}

TEST_CASE("pool dispatch: a deadline counts from the moment when the call was sent") {
    stage on({.size = 1});
    on.ready(first_of(on));
    const auto slow = on.submit({}, 200ms);
    const auto second = on.submit({}, 200ms);
    on.pass(150ms);
    on.finish(first_of(on));
    on.pass(150ms);
    CHECK(on.end_of(slow) == call_end::answered);
    CHECK_FALSE(on.end_of(second));
    on.pass(60ms);
    CHECK(on.told_to_end().contains(first_of(on)));
    on.finish(first_of(on));  // too late
    CHECK_FALSE(on.end_of(second));
    on.die(first_of(on));
    CHECK(on.end_of(second) == call_end::timed_out);
    CHECK(on.live().size() == 1);  // its successor
    CHECK(on.machine.counted().lost == 1);
    CHECK(on.machine.counted().replaced == 1);
    CHECK(on.machine.throttled(on.now) == 0);
}

TEST_CASE("pool dispatch: a call that may not wait is sent at once, or not begun") {
    stage on({.size = 1});
    CHECK(on.end_of(on.submit(0s)) == call_end::not_begun);
    on.ready(first_of(on));
    CHECK_FALSE(on.end_of(on.submit(0s)));
    CHECK(on.end_of(on.submit(0s)) == call_end::not_begun);
    const auto patient = on.submit(5s);
    on.pass(4s);
    CHECK_FALSE(on.end_of(patient));
    on.pass(1s);
    CHECK(on.end_of(patient) == call_end::not_begun);
    CHECK(on.told_to_end().empty());
}

TEST_CASE("pool dispatch: cancelling touches no worker, or its own only") {
    stage on({.size = 2, .at_least = 2});
    for (const auto& [w, slot] : std::map(on.live()))
        on.ready(w);
    const auto first = on.submit(), second = on.submit(), third = on.submit();
    on.cancel(third, true);
    CHECK(on.end_of(third) == call_end::aborted);
    CHECK(on.told_to_end().empty());
    on.cancel(first, false);
    CHECK(on.end_of(first) == call_end::aborted);
    CHECK(on.told_to_end().empty());
    on.cancel(second, true);
    CHECK_FALSE(on.end_of(second));
    REQUIRE(on.told_to_end().size() == 1);
    on.die(*on.told_to_end().begin());
    CHECK(on.end_of(second) == call_end::aborted);
    on.finish(on.calls().begin()->first);
    CHECK(on.machine.counted().done == 1);
}

TEST_CASE("pool dispatch: workers that die before READY break the pool, until the next call") {
    stage on({.size = 4, .at_least = 2, .start_attempts = 3});
    const auto waiting = on.submit();
    int deaths = 0;
    while (!on.end_of(waiting)) {
        if (on.live().empty())
            REQUIRE(on.pass_to_deadline());
        else {
            on.die(first_of(on));
            ++deaths;
        }
    }
    CHECK(on.end_of(waiting) == call_end::broken);
    CHECK(deaths == 3);
    for (const auto& [w, slot] : std::map(on.live()))
        on.die(w);
    CHECK(on.live().empty());
    CHECK_FALSE(on.machine.deadline());
    CHECK(on.machine.is_broken());
    on.submit();
    on.pass_to_deadline();  // of the pause
    CHECK_FALSE(on.live().empty());
    on.ready(first_of(on));
    CHECK_FALSE(on.machine.is_broken());
}

TEST_CASE("pool dispatch: the starts of workers whose every task dies are damped") {
    stage on({.size = 1, .first_pause = 10ms, .longest_pause = 1s});
    for (int i = 0; i < 20; ++i)
        on.submit();
    int starts = 0;
    const auto until = on.now + 10s;
    while (on.now < until && !on.all_ended()) {
        if (on.live().empty()) {
            REQUIRE(on.pass_to_deadline());
            continue;
        }
        ++starts;
        on.ready(first_of(on));
        on.die(first_of(on));
    }
    CHECK(starts < 25);
    CHECK(starts > 10);
}

TEST_CASE("pool dispatch: a worker is recycled when its successor is ready, one at a time") {
    stage on({.size = 2, .at_least = 2, .tasks_per_worker = 1});
    const auto first = on.live();
    for (const auto& [w, slot] : first)
        on.ready(w);
    on.submit();
    on.submit();
    for (const auto& [w, slot] : first)
        on.finish(w);
    CHECK(on.told_to_end().empty());
    CHECK(on.live().size() == 3);
    const auto successor = on.live().rbegin()->first;
    on.submit();  // beyond its limit
    on.ready(successor);
    CHECK(on.calls().size() == 1);
    CHECK(on.told_to_end().size() + on.calls().size() >= 1);
    while (!on.calls().empty())
        on.finish(on.calls().begin()->first);
    REQUIRE(on.told_to_end().size() == 1);
    on.die(*on.told_to_end().begin());
    CHECK(on.live().size() == 3);  // the next one
    CHECK(on.machine.counted().recycled == 1);
}

TEST_CASE("pool dispatch: a stop ends calls that wait, and lets those that run end in time") {
    stage on({.size = 1, .drain_period = 1s});
    on.ready(first_of(on));
    const auto runs = on.submit(), waits = on.submit();
    const auto stopped = on.stop();
    CHECK(on.end_of(waits) == call_end::aborted);
    CHECK_FALSE(on.end_of(runs));
    CHECK(on.end_of(on.submit()) == call_end::aborted);
    SUBCASE("in time") {
        on.finish(first_of(on));
        CHECK(on.end_of(runs) == call_end::answered);
    }
    SUBCASE("too late") {
        on.pass_to_deadline();
        CHECK(on.told_to_end().size() == 1);
    }
    CHECK_FALSE(on.granted(stopped));
    on.die(first_of(on));
    CHECK(on.granted(stopped));
    CHECK(on.all_ended());
}

TEST_CASE("pool dispatch: without overlap a worker is recycled although calls wait") {
    rules r;
    r.size = 1;
    r.tasks_per_worker = 2;
    r.overlap = false;
    stage on(r);
    on.ready(first_of(on));
    const auto first = first_of(on);
    for (int i = 0; i < 5; ++i)
        on.submit();
    on.finish(first);
    CHECK(on.told_to_end().empty());
    on.finish(first);
    CHECK(on.told_to_end().contains(first));
    CHECK(on.calls().empty());
    on.die(first);
    CHECK(first_of(on) != first);
}

TEST_CASE("pool dispatch: recycling ends when no successor becomes ready, and the old one stays") {
    rules r;
    r.start_attempts = 2;
    stage on(r);
    const auto old = first_of(on);
    on.ready(old);
    const auto request = on.recycle();
    for (int i = 0; i < 2; ++i) {
        CHECK_FALSE(on.refused(request));
        REQUIRE(on.live().size() == 2);
        on.die(on.live().rbegin()->first);
        CHECK(on.machine.throttled(on.now) == (i == 0 ? 1 : 0));
        on.pass_to_deadline();
    }
    CHECK(on.refused(request));
    CHECK(on.live().size() == 1);
    on.submit();
    CHECK(on.calls().contains(old));
}

TEST_CASE("pool dispatch: workers beyond their limit are replaced while the pool drains") {
    rules r;
    r.size = 1;
    r.tasks_per_worker = 1;
    stage on(r);
    on.ready(1);
    for (int i = 0; i < 3; ++i)
        on.submit();
    const auto request = on.drain();
    on.finish(1);
    on.ready(2);
    on.finish(1);
    CHECK(on.told_to_end().contains(1));
    CHECK(on.calls().contains(2));
    on.die(1);
    on.finish(2);
    on.die(2);
    while (!on.granted(request) && !on.live().empty())
        on.die(first_of(on));
    CHECK(on.granted(request));
}

TEST_CASE("pool dispatch: READY that comes too late is none") {
    rules r;
    r.start_attempts = 2;
    stage on(r);
    for (int i = 0; i < 2; ++i) {
        on.pass_to_deadline();  // of the pause
        const auto late = first_of(on);
        on.pass(r.ready_within);
        on.ready(late);
        on.die(late);
    }
    CHECK(on.machine.has_failed_to_start());
}

TEST_CASE("pool dispatch: the replacement of a worker that died gets its slot") {
    rules r;
    r.size = 4;
    r.at_least = 0;
    stage on(r);
    on.submit();
    on.submit();
    on.ready(1);
    on.ready(2);
    on.finish(1);
    on.pass(r.idle);  // slot 0 becomes free
    on.die(1);
    on.die(2);
    on.submit();
    on.pass_to_deadline();
    CHECK(on.machine.counted().replaced == 1);
}

}  // namespace pool_dispatch_test
