// SPDX-License-Identifier: BSL-1.0
// Mutexes between processes.
#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "methods.hpp"
#include "procfs.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <future>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <unistd.h>

namespace mutex_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::event;
using cohort::mutex;
using cohort::mutex_lock;
using cohort::shared_value;
using cohort::start_method;

namespace {

void count(int, const mutex& guard, const shared_value<long>& counter, int times) {
    for (int i = 0; i < times; ++i) {
        const mutex_lock held(guard);
        const long seen = *counter;
        std::this_thread::yield();
        *counter = seen + 1;
    }
}
void holds_for_ever(int, const mutex& guard, const event& holds) {
    const mutex_lock held(guard);
    holds.set();
    for (;;)
        ::pause();
}
void holds_until(int, const mutex& guard, const event& holds, const event& may_go) {
    const mutex_lock held(guard);
    holds.set();
    may_go.wait();
}
void waits_for(int, const mutex& guard, const event& waits) {
    waits.set();
    const mutex_lock held(guard);
}
bool next_owner(int, const mutex& guard) { return mutex_lock(guard).owner_died(); }
mutex same(int, mutex given) { return given; }

}  // namespace

METHODS_TEST("mutex: one worker at a time has it") {
    for (const auto method : all_methods) {
        const mutex guard;
        const shared_value<long> counter;
        co_await cohort::run(cohort::function<count>(guard, counter, 500), by(method, 4));
        CHECK(*counter == 4 * 500);
    }
}

METHODS_TEST("mutex: the next owner is told of a killed one, and only that one") {
    for (const auto method : all_methods) {
        const mutex guard;
        const event holds;
        auto group = co_await cohort::spawn(cohort::function<holds_for_ever>(guard, holds),
                                            by(method).on_failure(cohort::on_failure::keep_going));
        co_await holds.async_wait(asio::use_awaitable);
        CHECK_FALSE(guard.try_lock());
        CHECK_FALSE(guard.try_lock_for(1ms));
        group.signal(SIGKILL);
        {
            const mutex_lock held(guard);  // as soon as the kernel has let go of it
            CHECK(held.owner_died());
        }
        const auto report = co_await cohort::run(cohort::function<next_owner>(guard), by(method));
        CHECK_FALSE(report.outcomes[0].result<bool>());
        (void)co_await group.wait();
    }
}

GROUP_TEST("mutex: a stopped owner keeps it, and lets go of it when it goes on") {
    const mutex guard;
    const event holds;
    const event may_go;
    auto group = co_await cohort::spawn(cohort::function<holds_until>(guard, holds, may_go), 1);
    co_await holds.async_wait(asio::use_awaitable);
    const pid_t owner = group.pids().at(0);
    group.signal(SIGSTOP);
    while (all_processes()[owner].state != 'T')  // no event tells of it
        std::this_thread::yield();
    may_go.set();
    CHECK_FALSE(guard.try_lock_for(1ms));
    CHECK_FALSE(guard.try_lock());
    group.signal(SIGCONT);
    {
        const mutex_lock held(guard);
        CHECK_FALSE(held.owner_died());
    }
    co_await group.join();
}

GROUP_TEST("mutex: a killed waiter harms nobody") {
    const mutex guard;
    const event waits;
    std::optional<mutex_lock> held(std::in_place, guard);
    auto group =
        co_await cohort::spawn(cohort::function<waits_for>(guard, waits),
                               cohort::options(2).on_failure(cohort::on_failure::keep_going));
    co_await waits.async_wait(asio::use_awaitable);
    group.signal(SIGKILL);
    (void)co_await group.wait();
    held.reset();
    const auto next = guard.try_lock();
    REQUIRE(next);
    CHECK_FALSE(next->owner_died());
}

GROUP_TEST("mutex: a thread that holds it can't lock it again, and is told so") {
    const mutex guard;
    mutex_lock held(guard);
    const auto code = [&](auto lock) {
        try {
            lock();
        } catch (const std::system_error& error) {
            return error.code();
        }
        return std::error_code();
    };
    CHECK(code([&] { const mutex_lock again(guard); }) == std::errc::resource_deadlock_would_occur);
    CHECK(code([&] { (void)guard.try_lock_for(1ms); }) == std::errc::resource_deadlock_would_occur);
    CHECK_FALSE(guard.try_lock());
    held.unlock();
    held.unlock();
    CHECK(guard.try_lock());
    co_return;
}

GROUP_TEST("mutex: threads of one process wait for it, and a lock can be moved") {
    const mutex guard;
    std::optional<mutex_lock> held(std::in_place, guard);
    auto other = std::async(std::launch::async, [&] {
        mutex_lock mine(guard);
        const mutex_lock moved(std::move(mine));
        return !guard.try_lock();
    });
    held.reset();
    CHECK(other.get());
    CHECK(guard.try_lock_for(generous_bound()));
    co_return;
}

GROUP_TEST("mutex: it travels in results, and the memory stays while it is locked") {
    std::optional<mutex> guard(std::in_place);
    const auto report = co_await cohort::run(cohort::function<same>(*guard), 1);
    const auto back = report.outcomes[0].result<mutex>();
    std::optional<mutex_lock> held(std::in_place, back);
    CHECK_FALSE(guard->try_lock());
    guard.reset();
    held.reset();
    CHECK(back.try_lock());
}

GROUP_TEST("mutex: dozens of killed owners lose nothing but what they were doing") {
    const mutex guard;
    const shared_value<long> counter;
    for (int round = 0; round < 25; ++round) {
        const event holds;
        auto group =
            co_await cohort::spawn(cohort::function<holds_for_ever>(guard, holds),
                                   cohort::options(2).on_failure(cohort::on_failure::keep_going));
        co_await holds.async_wait(asio::use_awaitable);
        group.signal(SIGKILL);  // one holds it, the other waits for it
        (void)co_await group.wait();
        const mutex_lock held(guard);
        CHECK(held.owner_died());
    }
}

}  // namespace mutex_test
