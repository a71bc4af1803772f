// SPDX-License-Identifier: BSL-1.0
// What an agent's clock says of its events, however long a message was under way.
#include "hosts/link/round_trips.hpp"

#include "hosts_values_ends.hpp"

#include <doctest/doctest.h>

#include <chrono>

namespace hosts_clock_test {

using namespace cohort;
using namespace cohort::multihost;
using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

constexpr time_point here_zero{1h};
constexpr far_clock there_zero = 5s;  // the same moment

/// Beats of the other end, one a second, that are under way for `way`, and their round trips.
/// @param slow  by how much its clock has come behind
void beat(round_trips& trips, int first, int count, duration way, duration slow = 0ms) {
    for (int i = first; i < first + count; ++i) {
        const auto asked = here_zero + i * 1s;
        const auto came = asked + 2 * way;
        trips.came(there_zero + i * 1s + way - slow, trips.answered(trips.sent(asked), 0s, came),
                   came);
    }
}

}  // namespace

TEST_CASE("hosts clock: the offset is that of the fastest beat") {
    round_trips trips;
    CHECK_FALSE(trips.offset());
    trips.came(there_zero, std::nullopt, here_zero);
    CHECK_FALSE(trips.offset());  // no round trip says how long it took
    round_trips usual;
    beat(usual, 0, 5, 10ms);
    beat(usual, 5, 4, 3s);
    CHECK(usual.offset() == here_zero.time_since_epoch() - there_zero);
}

TEST_CASE("hosts clock: beats of twenty seconds ago are forgotten, because clocks drift") {
    round_trips trips;
    beat(trips, 0, 10, 10ms);
    const auto at_first = trips.offset();
    beat(trips, 10, 10, 12ms, 4ms);
    CHECK(trips.offset() == at_first);
    beat(trips, 20, 10, 12ms, 4ms);
    CHECK(trips.offset() == *at_first + 4ms);
}

TEST_CASE("hosts clock: a link that becomes slow in both directions changes nothing") {
    round_trips trips;
    beat(trips, 0, 10, 1ms);
    const auto at_first = trips.offset();
    beat(trips, 10, 40, 400ms);
    CHECK(trips.offset() == at_first);
}

TEST_CASE("hosts clock: a clock that stood still is noticed by the next round trip") {
    round_trips trips;
    beat(trips, 0, 3, 10ms);
    const auto at_first = trips.offset();
    beat(trips, 6, 1, 10ms, 3s);
    CHECK(trips.offset() == *at_first + 3s);
}

TEST_CASE("hosts clock: a beat that was late says nothing against a faster one") {
    round_trips trips;
    beat(trips, 0, 3, 10ms);
    beat(trips, 3, 1, 3s);
    CHECK(trips.offset() == here_zero.time_since_epoch() - there_zero);
}

TEST_CASE("hosts clock: an end that was long under way tells when it was") {
    const auto told = some_end(9);
    auto place = some_place(10);
    // Sent 7 s before it came.
    place.offset = place.now - 7s - agents_now;
    const auto read = read_end(write_end(told, agents_now), place);
    REQUIRE(read);
    const auto& left = *read.value->left;
    CHECK(place.now - 7s - left.ended == agents_now - told.left->ended);
    CHECK(place.time_of_day - left.ended_at == place.now - left.ended);
}

TEST_CASE("hosts clock: a time beyond the life of the group is not believed") {
    auto place = some_place(10);
    for (const auto wrong : {-10h, 10h}) {
        place.offset = place.now - agents_now + wrong;
        const auto read = read_end(write_end(some_end(9), agents_now), place);
        REQUIRE(read);
        CHECK(read.value->left->ended >= place.earliest);
        CHECK(read.value->left->ended <= place.now);
    }
    CHECK(place.when(latest_far_clock) <= place.now);
    CHECK(place.when(0s) >= place.earliest);
    place.offset.reset();
    CHECK(place.when(latest_far_clock) == place.now);
}

}  // namespace hosts_clock_test
