// SPDX-License-Identifier: BSL-1.0
// first_of: the first operation that ends, well or badly, decides; the others are cancelled.
#include "live_support.hpp"

#include <asio/co_spawn.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace first_of_test {

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

struct no_default {
    explicit no_default(int given) : value(std::make_unique<int>(given)) {}
    std::unique_ptr<int> value;
};

asio::awaitable<no_default> give(int value) { co_return no_default(value); }

asio::awaitable<std::string> give_text(std::string text) { co_return text; }

asio::awaitable<void> fail() {
    throw std::domain_error("failed first");
    co_return;
}

/// Waits until it is cancelled, and says so.
asio::awaitable<void> wait_for_ever(bool& cancelled) {
    asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
    asio::error_code error;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
    cancelled = error == asio::error::operation_aborted;
}

asio::awaitable<int> wait_then_give(bool& cancelled, int value) {
    co_await wait_for_ever(cancelled);
    co_return value;
}

}  // namespace

GROUP_TEST("first of: the first value wins, and the other is cancelled and awaited") {
    bool cancelled = false;
    auto first = co_await cohort::first_of(wait_for_ever(cancelled), give(7));
    REQUIRE(first.index() == 1);
    CHECK(*std::get<1>(first).value == 7);
    CHECK(cancelled);
    auto other = co_await cohort::first_of(give_text("a text that is longer than a small string"),
                                           wait_then_give(cancelled, 3));
    CHECK(std::get<0>(other) == "a text that is longer than a small string");
}

GROUP_TEST("first of: the first exception is thrown, and the others are cancelled") {
    bool cancelled = false, also = false;
    std::string thrown;
    try {
        (void)co_await cohort::first_of(wait_for_ever(cancelled), fail(), wait_for_ever(also));
    } catch (const std::domain_error& e) {
        thrown = e.what();
    }
    CHECK(thrown == "failed first");
    CHECK(cancelled);
    CHECK(also);
}

GROUP_TEST("first of: what ends together, one alone, and one inside another") {
    const auto both = co_await cohort::first_of(give(1), give(2));
    CHECK(both.index() == 0);
    const auto alone = co_await cohort::first_of(give(5));
    CHECK(*std::get<0>(alone).value == 5);
    bool inner = false, outer = false;
    auto nested = co_await cohort::first_of(
        wait_for_ever(outer), cohort::first_of(wait_for_ever(inner), give_text("deep")));
    CHECK(std::get<1>(std::get<1>(nested)) == "deep");
    CHECK(inner);
    CHECK(outer);
}

TEST_CASE("first of: cancelled from outside, all are cancelled, and it throws what they throw") {
    const leak_guard guard;
    asio::io_context io;
    asio::cancellation_signal cancel;
    bool one = false, two = false, threw = false;
    const auto both = [](bool& a, bool& b) -> asio::awaitable<void> {
        (void)co_await cohort::first_of(wait_for_ever(a), wait_for_ever(b));
    };
    asio::co_spawn(io, both(one, two),
                   asio::bind_cancellation_slot(
                       cancel.slot(), [&](std::exception_ptr e) { threw = e != nullptr; }));
    io.poll();
    cancel.emit(asio::cancellation_type::terminal);
    run_out(io);
    CHECK(one);
    CHECK(two);
}

TEST_CASE("first of: a total cancellation from outside reaches all, like any other") {
    const leak_guard guard;
    asio::io_context io;
    asio::cancellation_signal cancel;
    bool one = false, two = false, done = false;
    const auto both = [](bool& a, bool& b) -> asio::awaitable<void> {
        co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
        (void)co_await cohort::first_of(wait_for_ever(a), wait_for_ever(b));
    };
    asio::co_spawn(
        io, both(one, two),
        asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr) { done = true; }));
    io.poll();
    cancel.emit(asio::cancellation_type::total);
    cancel.emit(asio::cancellation_type::total);
    run_out(io);
    CHECK(done);
    CHECK(one);
    CHECK(two);
}

GROUP_TEST("first of: a worker's failure is told at once, where || would wait for the timer") {
    auto group = co_await cohort::spawn(cohort::command("false"), 1);
    bool cancelled = false;
    int index = -1;
    try {
        (void)co_await cohort::first_of(group.join(), wait_for_ever(cancelled));
    } catch (const cohort::process_exited_exception& e) {
        index = e.error_index();
    }
    CHECK(index == 0);
    CHECK(cancelled);
}

GROUP_TEST("first of: a join that is not first is cancelled, so its group is stopped") {
    auto group = co_await cohort::spawn(cohort::command("sleep", "1000"), 2);
    const auto first = co_await cohort::first_of(group.join(), give(1));
    CHECK(first.index() == 1);
    CHECK(group.alive() == 0);
}

}  // namespace first_of_test
