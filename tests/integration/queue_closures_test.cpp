// SPDX-License-Identifier: BSL-1.0
// Queues that forked copies of this process have captured.
#include "group_test.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace queue_closures_test {

using namespace cohort::test;
using namespace asio::experimental::awaitable_operators;
using cohort::queue;

namespace {

cohort::options by_fork() { return cohort::options(1).start_method(cohort::start_method::fork); }

}  // namespace

GROUP_TEST(
    "queue closures: a closure uses a queue that it keeps, and says so of one that it does not") {
    queue<int> numbers;
    queue<int> answers;
    auto reader = numbers.reader();
    auto writer = answers.writer();
    auto work = [reader, writer](int) mutable {
        try {
            writer.put(*reader.get());
        } catch (const cohort::sharing_error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    auto kept = cohort::closure(work).keep(reader, writer);
    auto group = co_await cohort::spawn(kept, by_fork());
    co_await numbers.put(7);
    CHECK(*co_await answers.get() == 7);
    co_await group.join();

    auto lost = cohort::closure(work);
    const auto done = co_await cohort::run(lost, by_fork());
    CHECK(done.outcomes[0].result<std::string>().find("keep(") != std::string::npos);
}

GROUP_TEST("queue closures: a worker can keep a queue for a worker of its own") {
    if (!groups_in_copies)
        co_return skip(no_threads_in_copies);
    queue<int> answers;
    auto writer = answers.writer();
    auto outer = [writer](int) mutable {
        auto inner = [writer](int) mutable { writer.put(1); };
        auto kept = cohort::closure(inner).keep(writer);
        asio::io_context io;
        run_coroutine(io, [](auto work) -> asio::awaitable<void> {
            co_await cohort::run(std::move(work), by_fork());
        }(kept));
        writer.put(2);  // its own descriptor is still there
    };
    auto kept = cohort::closure(outer).keep(writer);
    auto group = co_await cohort::spawn(kept, by_fork());
    CHECK(*co_await answers.get() == 1);
    CHECK(*co_await answers.get() == 2);
    co_await group.join();
}

GROUP_TEST("queue closures: run holds no captured end once the workers have started") {
    queue<int> answers;
    queue<int> permission;
    auto kept = [&] {
        auto work = [answers, writer = answers.writer(),
                     may_end = permission.reader()](int) mutable {
            writer.put(1);
            answers.close();
            (void)may_end.get();
        };
        return cohort::closure(work).keep(answers, permission.reader());
    }();
    const auto see_the_end = [](queue<int> from, queue<int> to) -> asio::awaitable<void> {
        CHECK(*co_await from.get() == 1);
        CHECK((co_await from.get()).ended());
        to.close();
    };
    co_await (cohort::run(std::move(kept), by_fork()) && see_the_end(answers, permission));
}

GROUP_TEST("queue closures: a whole queue takes its role in the worker, whatever the parent does") {
    if (!groups_in_copies)
        co_return skip(no_threads_in_copies);
    queue<int> numbers;
    queue<int> sums;
    auto work = [numbers, sums](int) mutable {
        int sum = 0;
        asio::io_context io;
        run_coroutine(io, [](queue<int> from, int& total) -> asio::awaitable<void> {
            while (auto number = co_await from.get())
                total += *number;
        }(numbers, sum));
        return sum;
    };
    auto kept = cohort::closure(work).keep(numbers, sums);
    auto group = co_await cohort::spawn(kept, by_fork());
    for (int i = 1; i <= 4; ++i)
        co_await numbers.put(i);
    numbers.close();
    const auto done = co_await group.wait();
    CHECK(done.outcomes[0].result<int>() == 10);
}

}  // namespace queue_closures_test
