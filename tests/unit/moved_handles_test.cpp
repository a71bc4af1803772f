// SPDX-License-Identifier: BSL-1.0
// What was moved from: an array is none, and events, barriers and mutexes are what they were.
#include "guard.hpp"

#include <cohort/shared_array.hpp>
#include <cohort/sync.hpp>

#include <doctest/doctest.h>

#include <utility>

namespace moved_handles_test {

using namespace cohort::test;
using cohort::shared_array;

TEST_CASE("moved handles: an array that was moved from has no elements and no address") {
    const leak_guard guard;
    shared_array<int> from(10);
    const int* const address = from.data();
    shared_array<int> to(std::move(from));
    CHECK(to.data() == address);
    CHECK_FALSE(from.valid());
    CHECK(from.size() == 0);
    CHECK(from.data() == nullptr);
    from = std::move(to);
    CHECK(from.data() == address);
    CHECK(from.size() == 10);
    CHECK(to.data() == nullptr);
    auto& same = from;
    from = std::move(same);
    CHECK(from.data() == address);
}

TEST_CASE("moved handles: an event, a barrier and a mutex that were moved from work on") {
    const leak_guard guard;
    cohort::event event;
    const auto moved_event = std::move(event);
    event.set();
    CHECK(moved_event.is_set());
    cohort::barrier barrier(2);
    const auto moved_barrier = std::move(barrier);
    CHECK(barrier.parties() == moved_barrier.parties());
    cohort::mutex mutex;
    const auto moved_mutex = std::move(mutex);
    const cohort::mutex_lock locked(mutex);
    CHECK_FALSE(moved_mutex.try_lock());
}

}  // namespace moved_handles_test
