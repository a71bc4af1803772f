// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/duration.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <stdexcept>

namespace duration_test {

using cohort::detail::saturating_add;
using cohort::detail::steady_duration;
using cohort::detail::steady_time_point;
using cohort::detail::to_option_duration;
using cohort::detail::to_steady;
using namespace std::chrono_literals;

TEST_CASE("duration: whole and broken spans become nanoseconds") {
    CHECK(to_steady(3h).count() == 10'800'000'000'000);
    CHECK(to_steady(-7ms).count() == -7'000'000);
    CHECK(to_steady(0.5s).count() == 500'000'000);
    CHECK(to_steady(0.1s).count() == 100'000'000);
    CHECK(to_steady(std::chrono::duration<float>(0.25F)).count() == 250'000'000);
    CHECK(to_steady(std::chrono::duration<long double>(0.125L)).count() == 125'000'000);
    CHECK(to_steady(std::chrono::duration<std::uint8_t>(200)).count() == 200'000'000'000);
}

TEST_CASE("duration: a part of a nanosecond is rounded up") {
    using picoseconds = std::chrono::duration<std::int64_t, std::pico>;
    CHECK(to_steady(picoseconds(1)).count() == 1);
    CHECK(to_steady(picoseconds(2000)).count() == 2);
    CHECK(to_steady(picoseconds(-1)).count() == 0);
    CHECK(to_steady(picoseconds(-1999)).count() == -1);
    CHECK(to_steady(1e-12s).count() == 1);
    CHECK(to_steady(std::chrono::duration<int, std::ratio<1, 3>>(1)).count() == 333'333'334);
}

TEST_CASE("duration: what is beyond the clock is held at its ends") {
    CHECK(to_steady(std::chrono::hours::max()) == steady_duration::max());
    CHECK(to_steady(std::chrono::hours::min()) == steady_duration::min());
    CHECK(to_steady(std::chrono::duration<std::uint64_t>(~std::uint64_t{0})) ==
          steady_duration::max());
    CHECK(to_steady(1e300s) == steady_duration::max());
    CHECK(to_steady(-1e300s) == steady_duration::min());
    CHECK(to_steady(std::chrono::duration<double>::max()) == steady_duration::max());
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK(to_steady(std::chrono::duration<double>(infinity)) == steady_duration::max());
    CHECK(to_steady(std::chrono::duration<double>(-infinity)) == steady_duration::min());
    CHECK(to_steady(steady_duration::max()) == steady_duration::max());
    CHECK(to_steady(steady_duration::min()) == steady_duration::min());
}

TEST_CASE("duration: what is not a number is refused") {
    const std::chrono::duration<double> nan(std::numeric_limits<double>::quiet_NaN());
    CHECK_THROWS_WITH_AS(to_steady(nan), "cohort: a duration is not a number",
                         std::invalid_argument);
    CHECK_THROWS_AS(to_option_duration("grace_period", nan), std::invalid_argument);
}

TEST_CASE("duration: a sum is held at the ends of the clock") {
    const steady_time_point now(1h);
    CHECK(saturating_add(now, 1s) == now + 1s);
    CHECK(saturating_add(now, -2h) == now - 2h);
    CHECK(saturating_add(now, steady_duration::max()) == steady_time_point::max());
    CHECK(saturating_add(steady_time_point(-1h), steady_duration::min()) ==
          steady_time_point::min());
    CHECK(saturating_add(steady_time_point::max(), steady_duration::min()).time_since_epoch() ==
          -1ns);
}

TEST_CASE("duration: an option's may be zero and not negative, however small") {
    CHECK(to_option_duration("grace_period", 0s) == 0s);
    CHECK_THROWS_WITH_AS(to_option_duration("grace_period", -1ns),
                         "cohort: grace_period: the duration is negative", std::invalid_argument);
    CHECK_THROWS_AS(to_option_duration("grace_period", -1e-12s), std::invalid_argument);
}

}  // namespace duration_test
