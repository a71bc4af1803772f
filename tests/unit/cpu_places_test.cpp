// SPDX-License-Identifier: BSL-1.0
// Which part of the caller's CPUs a worker gets.
#include "group/starts/cpu_places.hpp"

#include <doctest/doctest.h>

#include <optional>

namespace cpu_places_test {

using cohort::groups::cpu_places;

TEST_CASE("cpu places: workers have the parts in turn") {
    cpu_places places(3);
    const auto first = places.take(0);
    const auto second = places.take(1);
    const auto third = places.take(2);
    CHECK(*first == 0);
    CHECK(*second == 1);
    CHECK(*third == 2);
}

TEST_CASE("cpu places: a worker gets the part that is free, whichever its turn is") {
    cpu_places places(3);
    const auto first = places.take(0);
    auto second = places.take(1);
    const auto third = places.take(2);
    second.reset();
    const auto fourth = places.take(3);
    CHECK(*fourth == 1);
}

TEST_CASE("cpu places: without a free part one of those is shared that fewest use") {
    cpu_places places(2);
    const auto first = places.take(0);
    const auto second = places.take(1);
    const auto third = places.take(2);
    CHECK(*third == 0);
    const auto fourth = places.take(4);
    CHECK(*fourth == 1);
}

TEST_CASE("cpu places: what is in use may outlive them") {
    std::optional<cpu_places> places(1);
    auto kept = places->take(0);
    places.reset();
    CHECK(*kept == 0);
    kept.reset();
}

}  // namespace cpu_places_test
