// SPDX-License-Identifier: BSL-1.0
// next(), outcomes() and alive(): a group as its workers end, one by one.
#include "group_test.hpp"
#include "guard.hpp"
#include "pipes.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ratio>
#include <set>
#include <stdexcept>
#include <vector>

namespace next_test {

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;
using cohort::test::ready;
using cohort::test::wait_for_go;

namespace {

/// Waits for a SIGUSR1 of its own; then an odd index fails.
void fail_if_odd(int index) {
    wait_for_go();
    if (index % 2 == 1)
        std::_Exit(index);
}

asio::awaitable<cohort::group> waiting_group(int size) {
    ready waits(co_await asio::this_coro::executor);
    auto group = co_await cohort::spawn(cohort::function<fail_if_odd>(),
                                        cohort::options(size)
                                            .on_failure(cohort::on_failure::keep_going)
                                            .fd(waits.child_end(), ready::number));
    co_await waits.wait(size);
    co_return group;
}

}  // namespace

GROUP_TEST("next: it gives the workers in the order of their ends, then nothing") {
    auto group = co_await waiting_group(4);
    for (const int index : {2, 0, 3, 1}) {
        group.signal(index, SIGUSR1);
        const auto one = co_await group.next();
        CHECK(one->index == index);
        CHECK(one->pid == group.pids()[index]);
        CHECK(one->success() == (index % 2 == 0));
    }
    for (int i = 0; i < 2; ++i) {
        const auto none = co_await group.next();
        CHECK((!none && none.ended()));
    }
}

GROUP_TEST("next: ends that came before the call are given later, in their order") {
    auto group = co_await waiting_group(3);
    for (const int index : {1, 2}) {
        const int left = group.alive() - 1;
        group.signal(index, SIGUSR1);
        while (group.alive() != left)  // each is seen to end before the next is let go
            co_await group.join(1ms);
    }
    group.signal(0, SIGUSR1);
    std::vector<int> order;
    while (auto one = co_await group.next())
        order.push_back(one->index);
    CHECK(order == std::vector<int>{1, 2, 0});
}

GROUP_TEST("next: each of several pending calls gets another worker, and one too many gets none") {
    auto group = co_await waiting_group(2);
    group.signal(SIGUSR1);
    const auto [a, b, c] = co_await (group.next() && group.next() && group.next());
    std::multiset<int> told;
    for (const auto* one : {&a, &b, &c})
        told.insert(*one ? (*one)->index : -1);
    CHECK(told == std::multiset<int>{-1, 0, 1});
}

GROUP_TEST("next: a timeout says whether the time was up or every end has been given") {
    auto group = co_await waiting_group(2);
    for (const auto patience : {0ms, -5ms, 10ms}) {
        const auto none = co_await group.next(patience);
        CHECK((!none && none.timed_out() && !none.ended()));
    }
    CHECK_THROWS_AS(co_await group.next(std::chrono::duration<double>(std::nan(""))),
                    std::invalid_argument);
    CHECK(group.alive() == 2);
    group.signal(1, SIGUSR1);
    const auto first = co_await group.next(std::chrono::duration<double, std::ratio<3600>>(1));
    CHECK((first && first->index == 1));
    group.signal(0, SIGUSR1);
    co_await group.wait();
    const auto second = co_await group.next(0ms);  // a poll finds an end that was there before
    CHECK((second && second->index == 0 && second->success()));
    for (const auto patience : {0ms, std::chrono::milliseconds(1h)}) {
        const auto none = co_await group.next(patience);
        CHECK((!none && none.ended() && !none.timed_out()));
    }
}

GROUP_TEST("next: a group without workers gives nothing at once") {
    auto group = co_await cohort::spawn(cohort::command("true"), 0);
    const auto in_time = co_await group.next(1h);
    CHECK(in_time.ended());
    const auto none = co_await group.next();
    CHECK((!none && none.ended()));
    CHECK(group.size() == 0);
    CHECK(group.alive() == 0);
    CHECK(group.pids().empty());
}

GROUP_TEST("next: outcomes grow with each end, by index; first_failure comes with the last") {
    auto group = co_await waiting_group(4);
    CHECK(group.size() == 4);
    CHECK(group.alive() == 4);
    CHECK(group.outcomes().empty());
    std::set<int> expected;
    for (const int index : {3, 1, 2}) {
        group.signal(index, SIGUSR1);
        const auto one = co_await group.next();
        CHECK_FALSE(one->first_failure);
        expected.insert(index);
        std::vector<int> ended;
        for (const auto& worker : group.outcomes()) {
            ended.push_back(worker.index);
            CHECK_FALSE(worker.first_failure);
        }
        CHECK(ended == std::vector<int>(expected.begin(), expected.end()));
        CHECK(group.alive() == 4 - static_cast<int>(expected.size()));
    }
    group.signal(0, SIGUSR1);
    const auto last = co_await group.wait();
    CHECK(last.outcomes.size() == 4);
    for (const auto* all : {&last.outcomes})
        for (const auto& worker : *all)
            CHECK(worker.first_failure == (worker.index == 3));
    CHECK(group.outcomes()[3].first_failure);
    CHECK(group.alive() == 0);
}

GROUP_TEST("next: pids stay the same after the workers' ends") {
    auto group = co_await waiting_group(2);
    const auto before = group.pids();
    CHECK(before.size() == 2);
    CHECK(before[0] > 0);
    CHECK(before[0] != before[1]);
    group.signal(SIGUSR1);
    co_await group.wait();
    CHECK(group.pids() == before);
}

}  // namespace next_test
