// SPDX-License-Identifier: BSL-1.0
// Several failures in one group, by each start method: the first in time is thrown, and each worker
// keeps its own end.
#include "methods.hpp"
#include "sanitizers.hpp"
#include "trace_support.hpp"
#include "worker_support.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include <unistd.h>

namespace order_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;

namespace {

[[noreturn]] void raise_as(int index) {
    throw std::out_of_range("of worker " + std::to_string(index));
}

/// Each in a way of its own, when it is told to.
void fail_at_go(int index) {
    leave_no_core();
    wait_for_go();
    switch (index) {
    case 0:
        raise_as(index);
    case 1:
        std::abort();
    case 2:
        std::exit(5);
    default:
        [index]() noexcept { raise_as(index); }();
    }
}

void fail_in_first_others_when_stopped(int index) {
    leave_no_core();
    if (index == 0) {
        wait_for_go();
        std::abort();
    }
    wait_for_stop();
    raise_as(index);
}

struct closes_at_end {
    ~closes_at_end() { ::close(number); }
    const int number;
};

/// The other fails on account of what is closed on the way out, long before this one has said why.
void fail_by_unwinding(int index) {
    constexpr int read_end = 6;
    constexpr int write_end = 7;
    if (index == 0) {
        const closes_at_end closes{write_end};
        throw std::runtime_error("the true cause" + std::string(900'000, '\1'));
    }
    ::close(write_end);
    char byte = 0;
    if (::read(read_end, &byte, 1) == 0)
        throw std::runtime_error("its victim");
}

/// The other worker fails on account of what is closed on the way out. What reaches the top is
/// another exception, thrown when the other worker has ended.
void wrap_what_unwound(int index) {
    constexpr int read_end = 6;
    constexpr int write_end = 7;
    constexpr int end_of_other = 8;
    constexpr int held_by_other = 9;
    char byte = 0;
    if (index == 0) {
        ::close(held_by_other);
        try {
            const closes_at_end closes{write_end};
            throw std::runtime_error("the true cause");
        } catch (...) {
            (void)!::read(end_of_other, &byte, 1);
            std::throw_with_nested(std::runtime_error("what it led to"));
        }
    }
    ::close(write_end);
    if (::read(read_end, &byte, 1) == 0)
        throw std::runtime_error("its victim");
}

/// Starts four workers, lets them fail in this order, and gives what join throws.
template <class Error>
asio::awaitable<Error> failure_in_order(cohort::start_method method, std::vector<int> order) {
    ready waits(co_await asio::this_coro::executor);
    auto group = co_await cohort::spawn(cohort::function<fail_at_go>(),
                                        cohort::options(4)
                                            .start_method(method)
                                            .on_failure(cohort::on_failure::keep_going)
                                            .fd(waits.child_end(), ready::number));
    co_await waits.wait(4);
    for (const int index : order) {
        group.signal(index, SIGUSR1);
        const auto ended = co_await group.next();
        CHECK(ended->index == index);
    }
    co_return co_await failure<Error>(group);
}

void check_own_ends(const std::vector<cohort::outcome>& ends) {
    CHECK(ends[0].cause == cause::raised);
    CHECK(ends[0].error.value().message == "of worker 0");
    CHECK_FALSE(ends[0].crash.has_value());
    CHECK(ends[1].cause == cause::signaled);
    CHECK(ends[1].crash.value().signal == SIGABRT);
    CHECK_FALSE(ends[1].error.has_value());
    CHECK(ends[2].cause == cause::exited);
    CHECK(ends[2].status.exit_code() == 5);
    CHECK_FALSE(ends[2].error.has_value());
    CHECK(ends[3].cause == cause::raised);
    CHECK(ends[3].status.signal() == SIGABRT);
    CHECK(ends[3].error.value().message == "of worker 3");
    for (const int index : {0, 3}) {
        REQUIRE_FALSE(ends[static_cast<std::size_t>(index)].error->frames.empty());
        if (names_are_read)
            CHECK(contains(ends[static_cast<std::size_t>(index)].error->frames.back().function,
                           "raise_as"));
    }
}

}  // namespace

TEST_CASE("order: an exception that came first is thrown, all others are in the outcomes") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods)
        run_coroutine([](cohort::start_method method) -> asio::awaitable<void> {
            const std::vector<int> order{3, 1, 2, 0};
            const auto error =
                co_await failure_in_order<cohort::process_raised_exception>(method, order);
            CHECK(error.error_index() == 3);
            CHECK(error.outcomes()[3].first_failure);
            check_own_ends(error.outcomes());
        }(method));
}

TEST_CASE("order: a crash that came first is thrown, all others are in the outcomes") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods)
        run_coroutine([](cohort::start_method method) -> asio::awaitable<void> {
            const std::vector<int> order{1, 0, 3, 2};
            const auto error =
                co_await failure_in_order<cohort::process_exited_exception>(method, order);
            CHECK(error.error_index() == 1);
            CHECK(error.outcomes()[1].first_failure);
            check_own_ends(error.outcomes());
        }(method));
}

TEST_CASE("order: victims of a crash keep what they raise when they are stopped") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        if (!groups_in_copies && method == cohort::start_method::fork)
            continue;  // a stop token has a thread
        run_coroutine([](cohort::start_method method) -> asio::awaitable<void> {
            ready waits(co_await asio::this_coro::executor);
            auto group = co_await cohort::spawn(
                cohort::function<fail_in_first_others_when_stopped>(),
                cohort::options(3).start_method(method).fd(waits.child_end(), ready::number));
            co_await waits.wait(3);
            group.signal(0, SIGUSR1);
            const auto error = co_await failure<cohort::process_exited_exception>(group);
            CHECK(error.error_index() == 0);
            CHECK(error.outcomes()[0].crash.has_value());
            for (const int index : {1, 2}) {
                const auto& victim = error.outcomes()[static_cast<std::size_t>(index)];
                CHECK(victim.cause == cause::stopped);
                CHECK_FALSE(victim.first_failure);
                REQUIRE(victim.error.has_value());
                CHECK(victim.error->message == "of worker " + std::to_string(index));
                CHECK_FALSE(victim.error->frames.empty());
            }
        }(method));
    }
}

TEST_CASE("order: a worker that fails because another one unwinds is not the first failure") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods)
        for (int round = 0; round < how_many(3, 1); ++round) {
            pipe_pair pipe;
            auto how = cohort::options(2).start_method(method).notice_period(1min);
            how.fd(pipe.reads(), 6).fd(pipe.writes(), 7);
            run_coroutine([](cohort::options how, pipe_pair& pipe) -> asio::awaitable<void> {
                auto group =
                    co_await cohort::spawn(cohort::function<fail_by_unwinding>(), std::move(how));
                pipe.close_writes();
                const auto error = co_await failure<cohort::process_raised_exception>(group);
                CHECK(error.error_index() == 0);
                CHECK(error.error().message.starts_with("the true cause"));
                CHECK(error.outcomes()[0].cause == cause::raised);
            }(std::move(how), pipe));
        }
}

TEST_CASE("order: a worker that wraps an exception failed when the innermost was thrown") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        pipe_pair pipe, end_of_other;
        auto how = cohort::options(2).start_method(method).notice_period(1min);
        how.fd(pipe.reads(), 6).fd(pipe.writes(), 7);
        how.fd(end_of_other.reads(), 8).fd(end_of_other.writes(), 9);
        run_coroutine([](cohort::options how, pipe_pair& pipe,
                         pipe_pair& end_of_other) -> asio::awaitable<void> {
            auto group =
                co_await cohort::spawn(cohort::function<wrap_what_unwound>(), std::move(how));
            pipe.close_writes();
            end_of_other.close_writes();
            const auto error = co_await failure<cohort::process_raised_exception>(group);
            CHECK(error.error_index() == 0);
            CHECK(error.error().message == "what it led to");
            CHECK(error.outcomes()[1].cause == cause::raised);
        }(std::move(how), pipe, end_of_other));
    }
}

TEST_CASE("order: every start method gives the stack from the worker's function on") {
    if (!names_are_read)
        return skip(no_names);
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        const auto error =
            error_of(cohort::function<raise_as>(), cohort::options(1).start_method(method));
        INFO(all_of(error.frames));
        REQUIRE(error.frames.size() == 1);
        CHECK(contains(error.frames[0].function, "raise_as"));
    }
}

}  // namespace order_test
