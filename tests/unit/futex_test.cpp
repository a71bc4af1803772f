// SPDX-License-Identifier: BSL-1.0
#include "base/sys/threads.hpp"

#include <doctest/doctest.h>

#include <thread>

namespace futex_test {

using namespace cohort;
using namespace std::chrono_literals;

TEST_CASE("futex: a wait on a word that has changed already returns at once") {
    const base::futex word = 2;
    base::wait_on(word, 1);
    CHECK(base::wait_on(word, 1, base::deadline_in(10min)));
}

TEST_CASE("futex: a waiter sees the change") {
    base::futex word = 0;
    std::jthread other([&] {
        while (word == 0)
            base::wait_on(word, 0);
        word = 2;
        base::wake(word);
    });
    word = 1;
    base::wake(word);
    const auto deadline = base::deadline_in(10min);
    while (word != 2)
        REQUIRE(base::wait_on(word, 1, deadline));
}

TEST_CASE("futex: a wait ends at its deadline") {
    const base::futex word = 0;
    const auto begin = std::chrono::steady_clock::now();
    const auto deadline = base::deadline_in(20ms);
    while (base::wait_on(word, 0, deadline))
        continue;
    CHECK(std::chrono::steady_clock::now() - begin >= 20ms);
    CHECK_FALSE(base::wait_on(word, 0, base::deadline_in(-1ms)));
}

TEST_CASE("futex: a deadline is a time of the monotonic clock, with whole seconds carried") {
    for (const auto timeout : {0ns, 999'999'999ns, 3'000'000'001ns, -1ns}) {
        timespec before{};
        ::clock_gettime(CLOCK_MONOTONIC, &before);
        const auto at = base::deadline_in(timeout);
        CHECK(at.tv_nsec >= 0);
        CHECK(at.tv_nsec < 1'000'000'000);
        const auto since = std::chrono::seconds(at.tv_sec - before.tv_sec) +
                           std::chrono::nanoseconds(at.tv_nsec - before.tv_nsec);
        CHECK(since >= timeout);
    }
}

}  // namespace futex_test
