// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/cohort.hpp>
#include <cohort/detail/type_name.hpp>

#ifdef COHORT_BOOST_ASIO
#include <boost/asio.hpp>
#else
#include <asio.hpp>
#endif

#include <doctest/doctest.h>

#include <chrono>
#include <exception>
#include <future>
#include <typeinfo>
#include <utility>
#include <variant>

// One half of a program: this text is compiled once with each Asio. What stands outside of the
// unnamed namespace is the same in both halves. So a template of the library that gets only such
// types has one name in both, unless the library tells them apart.
namespace cohort::test {

/// A handler that knows no Asio.
template <class T>
struct landing {
    std::promise<T>* promise;
    void operator()(std::exception_ptr error, T value) const {
        if (error)
            promise->set_exception(std::move(error));
        else
            promise->set_value(std::move(value));
    }
};

/// What `start`, which begins an operation, gives to its handler.
template <class T, class Start>
T landed(Start start) {
    std::promise<T> promise;
    auto future = promise.get_future();
    start(landing<T>{&promise});
    return future.get();
}

/// Everything that the other half does, for a case that does both at once.
void live_with_standalone_asio();
void live_with_boost_asio();

namespace {

#ifdef COHORT_BOOST_ASIO
namespace net = ::boost::asio;
#else
namespace net = ::asio;
#endif

using namespace std::chrono_literals;

int square(int index, const cohort::event& go, cohort::queue_writer<int> squares) {
    go.wait();
    squares.put(index * index);
    return index;
}

net::awaitable<void> await_a_group() {
    const cohort::event go;
    cohort::queue<int> squares;
    auto group = co_await cohort::spawn(cohort::function<square>(go, squares), 3);
    CHECK_FALSE(co_await group.join(0s));
    go.set();
    int sum = 0;
    while (auto each = co_await squares.get(1h))
        sum += *each;
    CHECK(sum == 0 + 1 + 4);
    CHECK(co_await group.join());
    const auto one = co_await cohort::execute(cohort::command("false"), 1h);
    CHECK(one.status.exit_code() == 1);
#if !defined(COHORT_BOOST_ASIO) || BOOST_VERSION >= 107700
    auto joined = group.join();
    const auto first = co_await cohort::first_of(std::move(joined));
    CHECK(std::get<0>(first));
#endif
    int indices = 0;
    while (auto ended = co_await group.next())
        indices += ended->result<int>();
    CHECK(indices == 0 + 1 + 2);
}

net::awaitable<void> await_output() {
    auto group = co_await cohort::spawn(cohort::command("echo", "said"),
                                        cohort::options(1).stdout_to(cohort::lines()));
    const auto line = co_await group.output();
    CHECK(line->text == "said");
    CHECK(co_await group.join());
}

/// In coroutines on a thread of this half's own.
void live_in_coroutines() {
    net::io_context io;
    auto awaited = net::co_spawn(io, await_a_group(), net::use_future);
    auto printed = net::co_spawn(io, await_output(), net::use_future);
    io.run();
    awaited.get();
    printed.get();
}

/// With handlers of types that the other half has too.
void live_by_handlers() {
    net::thread_pool pool(2);
    auto group = landed<cohort::group>([&](auto handler) {
        cohort::async_spawn(pool, cohort::command("true"), cohort::options(2), handler);
    });
    CHECK(landed<bool>([&](auto handler) { group.async_join(handler); }));
    CHECK(landed<bool>([&](auto handler) { group.async_join(1h, handler); }));
    CHECK(landed<cohort::report>([&](auto handler) { group.async_wait(handler); }).success());
    cohort::queue<int> numbers(1);
    CHECK(landed<bool>([&](auto handler) { numbers.async_put(7, 1h, handler); }));
    const auto got =
        landed<cohort::received<int>>([&](auto handler) { numbers.async_get(1h, handler); });
    CHECK(*got == 7);
}

void live() {
    live_in_coroutines();
    live_by_handlers();
}

}  // namespace

}  // namespace cohort::test
