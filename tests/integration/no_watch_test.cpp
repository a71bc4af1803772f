// SPDX-License-Identifier: BSL-1.0
// Where epoll has no room for one more watch, which is a limit of the user that other programs can
// use up, what is awaited waits all the same: queues, events and barriers.
#include "group_test.hpp"
#include "reporter.hpp"
#include "system_call_filter.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace no_watch_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::queue;

namespace {

constexpr int no_room[] = {ENOSPC, ENOMEM};

/// A coroutine that has to wait where there is no room for a watch.
class without_watches {
public:
    /// Begins it on a thread whose calls of epoll_ctl(2) fail with `error`.
    without_watches(int error, asio::awaitable<void> body) {
        std::thread([&] {
            is_possible_ = deny(SYS_epoll_ctl, error);
            if (!is_possible_)
                return;
            asio::co_spawn(io_, std::move(body), [this](std::exception_ptr thrown) {
                is_done_ = true;
                thrown_ = std::move(thrown);
            });
            io_.poll();
        }).join();
        if (!is_possible_)
            skip("this machine does not allow seccomp filters");
    }
    bool is_possible() const noexcept { return is_possible_; }
    bool is_done() const noexcept { return is_done_; }
    /// Returns at its end. @throws its exception
    void await() {
        const watchdog bounded;
        io_.restart();
        io_.run();
        CHECK(is_done_);
        if (thrown_)
            std::rethrow_exception(thrown_);
    }

private:
    asio::io_context io_;
    bool is_possible_ = false;
    bool is_done_ = false;
    std::exception_ptr thrown_;
};

asio::awaitable<void> get_into(int& into, queue<int> from) {
    const auto got = co_await from.get();
    into = *got;
}
asio::awaitable<void> get_in_time_into(int& into, queue<int> from) {
    const auto got = co_await from.get(1h);
    into = *got;
}
asio::awaitable<void> get_no_value(bool& timed_out, queue<int> from) {
    const auto got = co_await from.get(20ms);
    timed_out = got.timed_out();
}
asio::awaitable<void> put_two(queue<int> to) { co_await to.put(2); }
asio::awaitable<void> wait_for(cohort::event what) {
    co_await what.async_wait(asio::use_awaitable);
}
asio::awaitable<void> arrive_at(cohort::barrier what) {
    co_await what.async_arrive_and_wait(asio::use_awaitable);
}
asio::awaitable<void> learn_that_it_broke(std::string& text, cohort::barrier what) {
    try {
        co_await what.async_arrive_and_wait(asio::use_awaitable);
    } catch (const cohort::broken_barrier& e) {
        text = e.what();
    }
}

}  // namespace

TEST_CASE("no watch: gets take what comes, or see that their time is up") {
    const leak_guard guard;
    for (const int error : no_room) {
        queue<int> numbers;
        numbers.keep_both_ends();
        int got = 0;
        without_watches get(error, get_into(got, numbers));
        if (!get.is_possible())
            return;
        CHECK_FALSE(get.is_done());
        numbers.writer().put(7);
        get.await();
        CHECK(got == 7);
        without_watches patient(error, get_in_time_into(got, numbers));
        CHECK_FALSE(patient.is_done());
        numbers.writer().put(8);
        patient.await();
        CHECK(got == 8);
        bool timed_out = false;
        without_watches short_one(error, get_no_value(timed_out, numbers));
        short_one.await();
        CHECK(timed_out);
    }
}

TEST_CASE("no watch: a put goes on when there is room in its queue") {
    const leak_guard guard;
    for (const int error : no_room) {
        queue<int> numbers(1);
        numbers.keep_both_ends();
        numbers.writer().put(1);
        without_watches put(error, put_two(numbers));
        if (!put.is_possible())
            return;
        CHECK_FALSE(put.is_done());
        CHECK(*numbers.try_get() == 1);
        put.await();
        CHECK(*numbers.try_get() == 2);
    }
}

TEST_CASE("no watch: a wait for an event ends when it is set") {
    const leak_guard guard;
    for (const int error : no_room) {
        const cohort::event event;
        without_watches wait(error, wait_for(event));
        if (!wait.is_possible())
            return;
        CHECK_FALSE(wait.is_done());
        event.set();
        wait.await();
    }
}

TEST_CASE("no watch: a wait at a barrier ends when the others come, or when it is broken") {
    const leak_guard guard;
    for (const int error : no_room) {
        const cohort::barrier both(2);
        without_watches arrival(error, arrive_at(both));
        if (!arrival.is_possible())
            return;
        CHECK_FALSE(arrival.is_done());
        both.arrive_and_wait();
        arrival.await();
        const cohort::barrier three(3);
        std::string text;
        without_watches other(error, learn_that_it_broke(text, three));
        CHECK_FALSE(other.is_done());
        CHECK_THROWS_AS(three.arrive_and_wait(1ms), cohort::broken_barrier);
        other.await();
        CHECK(text.find("had not arrived in time") != text.npos);
    }
}

}  // namespace no_watch_test
