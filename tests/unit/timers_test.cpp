// SPDX-License-Identifier: BSL-1.0
#include "loop/engine/engine.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace timers_test {

using cohort::loop::time_point;
using cohort::loop::timers;
using namespace std::chrono_literals;

TEST_CASE(
    "timers: they run in the order of their deadlines, equal ones in the order of the calls") {
    timers queue;
    std::string ran;
    queue.at(time_point(3s), [&] { ran += 'c'; });
    queue.at(time_point(1s), [&] { ran += 'a'; });
    queue.at(time_point(1s), [&] { ran += 'b'; });
    queue.at(time_point(9s), [&] { ran += 'd'; });
    CHECK(queue.next() == time_point(1s));
    queue.run(time_point(3s));
    CHECK(ran == "abc");
    CHECK(queue.next() == time_point(9s));
}

TEST_CASE("timers: none is due before its deadline") {
    timers queue;
    bool ran = false;
    queue.at(time_point(2s), [&] { ran = true; });
    queue.run(time_point(2s) - 1ns);
    CHECK_FALSE(ran);
    queue.run(time_point(2s));
    CHECK(ran);
    CHECK_FALSE(queue.next());
}

TEST_CASE("timers: a cancelled one does not run, also when another one cancels it") {
    timers queue;
    std::string ran;
    const auto second = queue.at(time_point(2s), [&] { ran += 'b'; });
    queue.at(time_point(1s), [&] {
        ran += 'a';
        queue.cancel(second);
    });
    queue.run(time_point(5s));
    CHECK(ran == "a");
    queue.cancel(second);  // it is gone: no effect
}

TEST_CASE("timers: one that sets another due at once does not keep the thread") {
    timers queue;
    int ran = 0;
    std::function<void()> again = [&] {
        ++ran;
        queue.at(time_point(1s), again);
    };
    queue.at(time_point(1s), again);
    queue.run(time_point(5s));
    CHECK(ran == 1);
    queue.run(time_point(5s));
    CHECK(ran == 2);
}

}  // namespace timers_test
