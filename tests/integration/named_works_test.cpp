// SPDX-License-Identifier: BSL-1.0
// Works that have a name: they live on after a start, and hold no end of a queue then.
#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "methods.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace named_works_test {

using namespace cohort::test;
using cohort::queue;
using cohort::queue_reader;
using cohort::queue_writer;

struct place {
    int number = 0;
    queue_writer<int> answer;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(place, number, answer)

struct single {
    single() = default;
    single(single&&) = default;
    single& operator=(single&&) = default;
};
void to_json(nlohmann::json& to, const single&) { to = nullptr; }
void from_json(const nlohmann::json&, single&) {}

namespace {

int count(int, const std::vector<single>& values) { return static_cast<int>(values.size()); }
void square(int, queue_reader<int> numbers, queue_writer<int> squares) {
    for (const int& number : numbers)
        squares.put(number * number);
}
void put_index(int index, queue_writer<int> to) { to.put(index + 1); }
void put_by_whole_queue(int, queue<int> to) {
    int one = 1;
    to.try_put(one);
}
void put_to_each(int, std::vector<queue_writer<int>> each, const place& last) {
    for (auto& to : each)
        to.put(1);
    queue_writer<int>(last.answer).put(last.number);
}

asio::awaitable<int> sum_until_end(queue<int> from) {
    int sum = 0;
    while (auto number = co_await from.get())
        sum += *number;
    co_return sum;
}

/// What a start throws because an end of a queue is gone.
template <class Work>
asio::awaitable<std::string> refusal(Work work, cohort::options how) {
    try {
        (void)co_await cohort::run(std::move(work), std::move(how));
    } catch (const cohort::sharing_error& error) {
        CHECK(error.code() == std::errc::bad_file_descriptor);
        co_return error.what();
    }
    co_return "nothing was thrown";
}

/// A closure whose callable is no variable any more.
auto closure_that_puts(queue<int> to) {
    auto call = [writer = to.writer()](int index) mutable { writer.put(index + 1); };
    return cohort::closure(call).keep(to.writer());
}

}  // namespace

METHODS_TEST("named works: the stream of a queue ends while a function that was given it lives") {
    for (const auto method : all_methods) {
        CAPTURE(method);
        queue<int> numbers;
        queue<int> squares;
        const auto work = cohort::function<square>(numbers, squares);
        auto group = co_await cohort::spawn(work, by(method, 2));
        for (int i = 1; i <= 4; ++i)
            co_await numbers.put(i);
        numbers.close();
        CHECK(co_await sum_until_end(squares) == 30);
        co_await group.join();

        queue<int> ones;
        const auto other = cohort::function<put_by_whole_queue>(ones);
        auto others = co_await cohort::spawn(other, by(method, 2));
        CHECK(co_await sum_until_end(ones) == 2);
        co_await others.join();
    }
}

METHODS_TEST("named works: the stream ends wherever in a function's arguments the end stands") {
    for (const auto method : all_methods) {
        CAPTURE(method);
        queue<int> first;
        queue<int> last;
        std::vector<queue_writer<int>> each{first.writer(), first.writer(), last.writer()};
        const auto work = cohort::function<put_to_each>(std::move(each), place{5, last.writer()});
        auto group = co_await cohort::spawn(work, by(method));
        CHECK(co_await sum_until_end(first) == 2);
        CHECK(co_await sum_until_end(last) == 6);
        co_await group.join();
    }
}

METHODS_TEST("named works: a function holds no end that it was given, so streams end before it") {
    for (const auto method : all_methods) {
        CAPTURE(method);
        queue_reader<int> first;
        queue_reader<int> second;
        queue_reader<int> third;
        const auto from_writer = [&first] {
            const queue<int> numbers;
            first = numbers.reader();
            const auto writer = numbers.writer();
            return cohort::function<put_index>(writer);
        }();
        const auto from_queue = [&second] {
            const queue<int> numbers;
            second = numbers.reader();
            return cohort::function<put_index>(numbers);
        }();
        const auto from_values = [&third] {
            const queue<int> numbers;
            third = numbers.reader();
            const std::vector<queue_writer<int>> each{numbers.writer(), numbers.writer()};
            const place last{5, numbers.writer()};
            return cohort::function<put_to_each>(each, last);
        }();
        CHECK(first.get().ended());
        CHECK(second.get().ended());
        CHECK(third.get().ended());
        const auto gone = "this process has closed that end of the queue";
        CHECK((co_await refusal(from_writer, by(method))).find(gone) != std::string::npos);
        CHECK((co_await refusal(from_queue, by(method))).find(gone) != std::string::npos);
        CHECK((co_await refusal(from_values, by(method))).find(gone) != std::string::npos);
    }
}

METHODS_TEST("named works: an end that only a function holds is there for its first start") {
    for (const auto method : all_methods) {
        CAPTURE(method);
        queue_reader<int> reader;
        const auto work = [&reader] {
            const queue<int> numbers;
            reader = numbers.reader();
            auto writer = numbers.writer();
            return cohort::function<put_index>(std::move(writer));
        }();
        auto group = co_await cohort::spawn(work, by(method, 2));
        co_await group.join();
        CHECK(*reader.get() + *reader.get() == 3);
        CHECK(reader.get().ended());
        CHECK(co_await refusal(work, by(method)) ==
              "cohort: argument 1 of 1 (cohort::queue_writer<int>): this process has closed that "
              "end of the queue");
    }
}

METHODS_TEST("named works: a function starts again as long as this process has the ends") {
    for (const auto method : all_methods) {
        CAPTURE(method);
        queue<int> numbers;
        auto work = cohort::function<put_index>(numbers);
        auto same = work;
        auto first = co_await cohort::spawn(work, by(method, 2));
        auto second = co_await cohort::spawn(same, by(method, 3));
        auto third = co_await cohort::spawn(std::move(work), by(method, 1));
        CHECK(co_await sum_until_end(numbers) == 3 + 6 + 1);
        co_await first.join();
        co_await second.join();
        co_await third.join();
        const auto why = co_await refusal(same, by(method));
        CHECK(why.find("this process has closed that end of the queue") != why.npos);
    }
}

METHODS_TEST("named works: a function without a name holds its ends until the start") {
    for (const auto method : all_methods) {
        CAPTURE(method);
        queue<int> numbers;
        auto writer = numbers.writer();
        auto group =
            co_await cohort::spawn(cohort::function<put_index>(std::move(writer)), by(method, 2));
        CHECK(co_await sum_until_end(numbers) == 3);
        co_await group.join();
    }
}

GROUP_TEST("named works: the stream of a queue ends while a closure lives that has captured it") {
    const auto how = by(cohort::start_method::fork, 2);
    queue<int> numbers;
    const auto work = closure_that_puts(numbers);
    auto first = co_await cohort::spawn(work, how);
    auto second = co_await cohort::spawn(work, how);
    CHECK(co_await sum_until_end(numbers) == 2 * 3);
    co_await first.join();
    co_await second.join();
    CHECK(co_await refusal(work, how) ==
          "cohort: argument 1 of 1 (cohort::queue_writer<int>): this process has closed that end "
          "of the queue");
}

GROUP_TEST("named works: keep holds no end, so the stream ends before the closure starts") {
    queue_reader<int> reader;
    auto nothing = [](int) {};
    const auto work = [&] {
        const queue<int> numbers;
        reader = numbers.reader();
        return cohort::closure(nothing).keep(numbers.writer());
    }();
    CHECK(reader.get().ended());
    const auto why = co_await refusal(work, by(cohort::start_method::fork));
    CHECK(why.find("this process has closed that end of the queue") != why.npos);
}

METHODS_TEST("named works: what can't be copied can still be an argument") {
    for (const auto method : all_methods) {
        CAPTURE(method);
        std::vector<single> values(3);
        auto work = cohort::function<count>(std::move(values));
        const auto report = co_await cohort::run(std::move(work), by(method));
        CHECK(report.outcomes[0].result<int>() == 3);
    }
}

GROUP_TEST("named works: a work that was moved away can't be started") {
    auto work = cohort::function<do_nothing>();
    (void)co_await cohort::run(std::move(work), 1);
    bool is_refused = false;
    try {
        (void)co_await cohort::run(std::move(work), 1);  // NOLINT: on purpose
    } catch (const std::logic_error&) {
        is_refused = true;
    }
    CHECK(is_refused);
}

}  // namespace named_works_test
