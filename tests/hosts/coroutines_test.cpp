// SPDX-License-Identifier: BSL-1.0
// Coroutines on every host: the tokens that they await, and the functions that are coroutines
// themselves.
#include "life.hpp"

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <asio/version.hpp>

#if ASIO_VERSION >= 102600
#include <asio/as_tuple.hpp>
#else
#include <asio/experimental/as_tuple.hpp>
#endif

namespace coroutines_test {

namespace {

using namespace cohort::test;
using namespace std::chrono_literals;

template <class T, class Op>
asio::awaitable<T> awaited(host& on, Op op) {
    auto result = co_await op(asio::use_awaitable);
    CHECK(on.here());
    co_return result;
}

struct by_awaitable {
    template <class T, class Op>
    static T get(host& on, Op op) {
        return asio::co_spawn(on.executor(), awaited<T>(on, op), asio::use_future).get();
    }
};

TEST_CASE_TEMPLATE("coroutines: every operation takes use_awaitable", Host, COHORT_TEST_HOSTS) {
    on<Host>(whole_life<by_awaitable>);
}

template <class T, class Op>
asio::awaitable<T> awaited_as_tuple(host& on, Op op) {
#if ASIO_VERSION >= 102600
    constexpr auto token = asio::as_tuple(asio::use_awaitable);
#else
    constexpr auto token = asio::experimental::as_tuple(asio::use_awaitable);
#endif
    auto [error, result] = co_await op(token);
    CHECK(on.here());
    if (error)
        std::rethrow_exception(error);
    co_return std::move(result);
}

struct by_tuple {
    template <class T, class Op>
    static T get(host& on, Op op) {
        return asio::co_spawn(on.executor(), awaited_as_tuple<T>(on, op), asio::use_future).get();
    }
};

TEST_CASE_TEMPLATE("coroutines: every operation takes as_tuple", Host, COHORT_TEST_HOSTS) {
    on<Host>(whole_life<by_tuple>);
}

int add(int index, int base) { return base + index; }

asio::awaitable<void> use_every_coroutine(host& on) {
    auto group = co_await cohort::spawn(cohort::function<add>(40), 3);
    CHECK(on.here());
    CHECK(co_await group.join());
    CHECK(co_await group.join(1h));
    int told = 0;
    while (auto ended = co_await group.next())
        told += ended->result<int>();
    CHECK(told == 40 + 41 + 42);
    CHECK((co_await group.wait()).success());
    CHECK((co_await group.stop()).success());
    CHECK(on.here());
    const auto report = co_await cohort::run(cohort::command("true"), 2);
    CHECK(report.outcomes.size() == 2);
    CHECK(on.here());
}

TEST_CASE_TEMPLATE("coroutines: a group of functions runs in a coroutine on every executor", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>([](host& each) {
        asio::co_spawn(each.executor(), use_every_coroutine(each), asio::use_future).get();
    });
}

asio::awaitable<void> lose_against_a_timer(asio::steady_timer& timer) {
    using namespace asio::experimental::awaitable_operators;
    auto group = co_await cohort::spawn(cohort::command("sleep", 1000), 2);
    timer.expires_after(1ms);
    co_await (group.next() || timer.async_wait(asio::use_awaitable));
    CHECK(group.alive() == 2);
    timer.expires_after(1ms);
    co_await (group.join() || timer.async_wait(asio::use_awaitable));
    CHECK(group.alive() == 0);
}

TEST_CASE_TEMPLATE("coroutines: against a timer next() leaves the workers, and join() leaves none",
                   Host, COHORT_TEST_HOSTS) {
    on<Host>([](host& each) {
        // Asio's io_uring races with itself at the end of a context that is none of Asio's own.
        one_thread clock;
        asio::steady_timer timer(clock.executor());
        const auto strand = asio::make_strand(each.executor());
        asio::co_spawn(strand, lose_against_a_timer(timer), asio::use_future).get();
    });
}

}  // namespace

}  // namespace coroutines_test
