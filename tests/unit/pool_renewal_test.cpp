// SPDX-License-Identifier: BSL-1.0
// How a pool renews its workers when successors die, are let go, or come one at a time.
#include "pool_stage.hpp"

#include <doctest/doctest.h>

#include <set>

namespace pool_renewal_test {

using namespace cohort::test;

TEST_CASE("pool renewal: a call that comes when a successor is gone gets another one") {
    for (const bool is_killed : {false, true}) {
        rules r;
        r.size = 1;
        r.at_least = 0;
        r.idle = 100ms;
        stage on(r);
        on.submit();
        on.ready(1);
        on.recycle();
        on.ready(2);  // the first one is still busy
        if (!is_killed)
            on.pass(r.idle);
        on.die(2);
        on.submit();
        if (!on.live().contains(3))
            on.pass_to_deadline();  // of the pause
        REQUIRE(on.live().contains(3));
        CHECK(on.live().at(3) == 0);
        CHECK(on.machine.counted().replaced == (is_killed ? 1 : 0));
        on.ready(3);
        CHECK(on.calls().contains(3));
    }
}

TEST_CASE("pool renewal: a crash after a refused recycle() breaks no pool") {
    rules r;
    r.size = 1;
    r.start_attempts = 2;
    stage on(r);
    on.ready(1);
    const auto request = on.recycle();
    on.die(2);
    on.pass_to_deadline();
    on.die(3);
    REQUIRE(on.refused(request));
    CHECK(on.machine.deaths() == 2);
    // The next refusal takes as many deaths.
    const auto second = on.recycle();
    on.pass_to_deadline();
    REQUIRE(on.live().contains(4));
    on.die(4);
    CHECK_FALSE(on.refused(second));
    on.pass_to_deadline();
    on.die(5);
    CHECK(on.refused(second));
    on.submit();
    on.finish(1);
    on.submit();
    const auto waiting = on.submit();
    on.die(1);
    CHECK_FALSE(on.end_of(waiting));
    on.pass_to_deadline();
    on.ready(on.live().begin()->first);
    CHECK(on.calls().size() == 1);
}

TEST_CASE("pool renewal: without overlap the next worker goes when a successor is ready") {
    rules r;
    r.size = 2;
    r.at_least = 2;
    r.overlap = false;
    stage on(r);
    on.ready(1);
    on.ready(2);
    const auto request = on.recycle();
    REQUIRE(on.told_to_end() == std::set<worker_id>{1});
    on.die(1);
    CHECK(on.live().contains(3));
    CHECK(on.told_to_end().size() == 1);
    on.die(3);
    on.pass_to_deadline();
    REQUIRE(on.live().contains(4));
    CHECK(on.told_to_end().size() == 1);
    on.ready(4);
    CHECK(on.told_to_end().contains(2));
    on.die(2);
    CHECK(on.granted(request));
    CHECK(on.live().contains(5));
}

TEST_CASE("pool renewal: a submit to a broken pool does not forget the pauses") {
    rules r;
    r.size = 1;
    r.at_least = 0;
    r.start_attempts = 1;
    stage on(r);
    for (auto shortest = r.first_pause / 2; shortest < r.longest_pause / 2; shortest *= 2) {
        on.submit();
        if (on.live().empty())
            on.pass_to_deadline();
        REQUIRE(on.live().size() == 1);
        on.die(on.live().begin()->first);
        CHECK(on.machine.is_broken());
        on.submit();
        REQUIRE(on.machine.deadline());
        CHECK(*on.machine.deadline() - on.now >= shortest);
    }
}

}  // namespace pool_renewal_test
