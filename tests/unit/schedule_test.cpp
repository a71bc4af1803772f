// SPDX-License-Identifier: BSL-1.0
#include "group/lifecycle/schedule.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace schedule_test {

using cohort::groups::schedule;

namespace {

std::vector<int> all_next(schedule& order) {
    std::vector<int> started;
    while (const auto next = order.take_next())
        started.push_back(*next);
    return started;
}

}  // namespace

TEST_CASE("schedule: without a limit, or with one that is not reached, nobody waits") {
    for (const int at_once : {0, 5, 6}) {
        schedule order(5, at_once);
        CHECK(schedule::first(5, at_once) == 5);
        CHECK(order.waiting() == 0);
        order.give_back_place();
        CHECK_FALSE(order.take_next());
    }
    CHECK(schedule(0, 3).waiting() == 0);
}

TEST_CASE("schedule: each place that is given back goes to the next worker, by index") {
    schedule order(6, 2);
    CHECK(schedule::first(6, 2) == 2);
    CHECK(order.waiting() == 4);
    CHECK_FALSE(order.take_next());
    order.give_back_place();
    order.give_back_place();
    CHECK(all_next(order) == std::vector{2, 3});
    order.give_back_place();
    CHECK(all_next(order) == std::vector{4});
    order.give_back_place();
    order.give_back_place();
    CHECK(all_next(order) == std::vector{5});
    CHECK(order.waiting() == 0);
}

TEST_CASE("schedule: a closed one starts nobody, and drops those that wait") {
    schedule order(5, 2);
    order.give_back_place();
    order.close();
    CHECK_FALSE(order.take_next());
    CHECK(order.drop_next() == 2);
    CHECK(order.drop_next() == 3);
    CHECK(order.waiting() == 1);
    CHECK(order.drop_next() == 4);
    CHECK_FALSE(order.drop_next());
    CHECK(order.waiting() == 0);
}

TEST_CASE("schedule: who starts again starts before those that never have, by index") {
    schedule order(6, 2);
    order.rest();
    order.rest();
    CHECK(order.waiting() == 6);
    order.give_back_place();
    order.give_back_place();
    order.start_again(1);
    order.start_again(0);
    CHECK(order.waiting() == 6);
    CHECK(all_next(order) == std::vector{0, 1});
    order.give_back_place();
    CHECK(all_next(order) == std::vector{2});
    CHECK(order.waiting() == 3);
}

TEST_CASE("schedule: who rests counts as waiting, and takes no place") {
    schedule order(2, 0);
    order.rest();
    order.give_back_place();
    CHECK(order.waiting() == 1);
    CHECK_FALSE(order.take_next());
    order.start_again(1);
    CHECK(all_next(order) == std::vector{1});
    order.rest();
    order.end_rest();
    CHECK(order.waiting() == 0);
}

TEST_CASE("schedule: nobody takes a place while it is held up") {
    schedule order(4, 1);
    order.give_back_place();
    order.hold_up(true);
    CHECK_FALSE(order.take_next());
    order.hold_up(false);
    CHECK(order.take_next() == 1);
}

TEST_CASE("schedule: who is put aside lets the others pass, and takes a free place in its turn") {
    schedule order(6, 1);
    order.give_back_place();
    CHECK(order.peek_next() == 1);
    CHECK_FALSE(order.peek_aside());
    order.put_aside();
    order.put_aside();
    CHECK(order.waiting() == 5);
    CHECK(order.take_next() == 3);
    CHECK_FALSE(order.peek_aside());  // there is no place
    order.give_back_place();
    CHECK(order.peek_aside() == 1);
    order.take_aside();
    CHECK(order.waiting() == 3);
    CHECK_FALSE(order.peek_aside());
    order.give_back_place();
    order.hold_up(true);
    CHECK_FALSE(order.peek_aside());
    order.hold_up(false);
    CHECK(order.peek_aside() == 2);
    order.close();
    CHECK_FALSE(order.peek_aside());
    for (const int index : {4, 5, 2})
        CHECK(order.drop_next() == index);
    CHECK_FALSE(order.drop_next());
    CHECK(order.waiting() == 0);
}

}  // namespace schedule_test
