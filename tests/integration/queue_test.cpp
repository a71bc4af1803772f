// SPDX-License-Identifier: BSL-1.0
// Queues between this process and workers: values, ends, roles, kills.
#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "methods.hpp"
#include "sanitizers.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace queue_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::queue;
using cohort::queue_reader;
using cohort::queue_writer;
using cohort::shared_array;
using cohort::start_method;

struct job {
    std::string name;
    shared_array<int> input;
    int limit = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(job, name, input, limit)
struct request {
    int number = 0;
    queue_writer<int> answer;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(request, number, answer)
namespace {

// --- what workers do ---

void square(int, queue_reader<int> numbers, queue_writer<int> squares) {
    for (const int& number : numbers)
        squares.put(number * number);
}
void echo(int, queue_reader<std::string> in, queue_writer<std::string> out) {
    while (auto text = in.get())
        out.put(*text);
}
void use_whole_queues(int, queue<int> in, queue<int> out) {
    int sum = 0;
    while (auto number = in.try_get())
        sum += *number;
    out.try_put(sum);
}
void add_up(int, queue_reader<job> jobs, queue_writer<int> sums) {
    for (auto& each : jobs) {
        const int sum = std::accumulate(each.input.begin(), each.input.end(), 0);
        each.input(0) = sum;
        sums.put(std::min(sum, each.limit));
    }
}
void answer(int, queue_reader<request> requests) {
    for (auto& each : requests)
        each.answer.put(2 * each.number);
}
void put_for_ever(int, queue_writer<int> numbers) {
    for (int i = 0;; ++i)
        numbers.put(i);
}
void get_for_ever(int, queue_reader<int> numbers) {
    while (numbers.get()) {
    }
}
void put_range(int index, queue_writer<int> numbers, int count) {
    for (int i = 0; i < count; ++i)
        numbers.put(index * count + i);
}
void put_all_of(int, queue_writer<int> numbers, int count) {
    std::vector<int> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    numbers.put_all(all);
}
void pass_on(int, queue_reader<int> from, queue_writer<std::vector<int>> to) {
    for (;;) {
        auto some = from.get_some(7);
        if (some.empty())
            return;
        to.put(std::move(some));
    }
}
queue_reader<int> give_reader(int) {
    queue<int> made;
    int one = 1;
    made.try_put(one);
    return made.reader();
}
int put_twice_is_refused(int, queue<int> numbers) {
    int one = 1;
    numbers.try_put(one);
    try {
        (void)numbers.try_get();
    } catch (const std::logic_error& error) {
        return std::string(error.what()).find("keep_both_ends") != std::string::npos ? 1 : 2;
    }
    return 0;
}
void get_until_stopped(int, queue_reader<int> numbers, queue_writer<int> answers) {
    const auto got = numbers.get(cohort::this_worker::stop_token());
    answers.put(got.stopped() ? 1 : 0);
}

template <class T>
asio::awaitable<std::vector<T>> all_of(queue<T>& from) {
    std::vector<T> all;
    while (auto each = co_await from.get())
        all.push_back(std::move(*each));
    co_return all;
}

}  // namespace

METHODS_TEST("queue: workers get what the parent puts, and the stream ends with its writers") {
    for (const auto method : all_methods) {
        queue<int> numbers;
        queue<int> squares;
        auto group =
            co_await cohort::spawn(cohort::function<square>(numbers, squares), by(method, 3));
        for (int i = 0; i < 50; ++i)
            co_await numbers.put(i);
        numbers.close();
        auto all = co_await all_of(squares);
        std::ranges::sort(all);
        CHECK(all.size() == 50);
        CHECK(all.back() == 49 * 49);
        co_await group.join();
    }
}

METHODS_TEST("queue: a queue passed whole takes its role by its first use") {
    for (const auto method : all_methods) {
        queue<int> in;
        queue<int> out;
        for (int i = 1; i <= 4; ++i)
            co_await in.put(i);
        co_await cohort::run(cohort::function<use_whole_queues>(in, out), by(method));
        const auto sum = co_await out.get();
        REQUIRE(sum);
        CHECK(*sum == 10);
        CHECK((co_await out.get()).ended());
    }
}

METHODS_TEST("queue: values with arrays cross without a copy of the array") {
    for (const auto method : all_methods) {
        queue<job> jobs;
        queue<int> sums;
        auto group = co_await cohort::spawn(cohort::function<add_up>(jobs, sums), by(method));
        shared_array<int> input(100);
        std::iota(input.begin(), input.end(), 0);
        const job first{"first", input, 1000};
        co_await jobs.put(first);
        CHECK(*co_await sums.get() == 1000);
        CHECK(input(0) == 4950);
        jobs.close();
        co_await group.join();
    }
}

METHODS_TEST("queue: ends travel inside values, and as results") {
    for (const auto method : all_methods) {
        queue<request> requests;
        auto group = co_await cohort::spawn(cohort::function<answer>(requests), by(method));
        for (int i = 0; i < 3; ++i) {
            queue<int> answers;
            const request asked{i, answers.writer()};
            co_await requests.put(asked);
            CHECK(*co_await answers.get() == 2 * i);
        }
        requests.close();
        co_await group.join();

        const auto done = co_await cohort::run(cohort::function<give_reader>(), by(method));
        auto reader = done.outcomes[0].result<queue_reader<int>>();
        CHECK(*reader.get() == 1);
        CHECK(reader.get().ended());
    }
}

GROUP_TEST("queue: values of every size arrive as they were") {
    queue<std::string> in;
    queue<std::string> out;
    auto group = co_await cohort::spawn(cohort::function<echo>(in, out), 1);
    std::vector<std::size_t> sizes{0,       1,     64, 4096, 100'000, 1 << 20, (1 << 20) + 1,
                                   5 << 20, 70'000};
    for (std::size_t near = 106'400; near < 106'600; near += 7)  // around the inline limit
        sizes.push_back(near);
    for (const auto size : sizes) {
        std::string sent(size, '\xff');
        for (std::size_t i = 0; i < size; i += 61)
            sent[i] = static_cast<char>(i);
        co_await in.put(sent);
        const auto came = co_await out.get();
        REQUIRE(came);
        CHECK((*came == sent));
    }
    in.close();
    CHECK((co_await out.get()).ended());
    co_await group.join();
}

GROUP_TEST("queue: a put past the capacity waits for a get") {
    queue<int> numbers(2);
    queue<int> answers(1);
    auto group = co_await cohort::spawn(cohort::function<square>(numbers, answers), 1);
    CHECK(co_await numbers.put(1, 10s));
    for (int i = 2; i <= 100; ++i) {
        co_await numbers.put(i);
        CHECK(*co_await answers.get() == (i - 1) * (i - 1));
    }
    numbers.close();
    CHECK(*co_await answers.get() == 100 * 100);
    CHECK((co_await answers.get()).ended());
    co_await group.join();
}

GROUP_TEST("queue: an awaited put with a timeout is false when the queue stays full") {
    queue<int> numbers(1);
    co_await numbers.put(1);
    CHECK_FALSE(co_await numbers.put(2, 20ms));
    CHECK(numbers.size() == 1);
    CHECK(*co_await numbers.get() == 1);
    CHECK((co_await numbers.get(10ms)).timed_out());
}

METHODS_TEST("queue: a writer that is killed at any moment tears nothing") {
    for (const auto method : all_methods) {
        queue<int> numbers;
        auto group = co_await cohort::spawn(cohort::function<put_for_ever>(numbers), by(method, 2));
        for (int i = 0; i < 100; ++i)
            CHECK(co_await numbers.get());
        group.signal(SIGKILL);
        std::size_t left = 0;
        while (co_await numbers.get())
            ++left;
        CHECK((co_await group.wait()).outcomes.size() == 2);
    }
}

METHODS_TEST("queue: a put without readers is a broken_queue, also one that waits") {
    for (const auto method : all_methods) {
        queue<int> numbers(1);
        auto group = co_await cohort::spawn(cohort::function<get_for_ever>(numbers), by(method, 1));
        co_await numbers.put(1);
        group.signal(SIGKILL);
        co_await group.wait();
        bool broken = false;
        try {
            for (int i = 0; i < 3; ++i)
                co_await numbers.put(i);
        } catch (const cohort::broken_queue& error) {
            broken = error.code() == std::errc::broken_pipe;
        }
        CHECK(broken);
    }
}

METHODS_TEST("queue: four writers and four readers get each value once, in each writer's order") {
    constexpr int count = 2000;
    for (const auto method : all_methods) {
        queue<int> numbers;
        queue<std::vector<int>> collected;
        auto readers =
            co_await cohort::spawn(cohort::function<pass_on>(numbers, collected), by(method, 4));
        auto writers = co_await cohort::spawn(cohort::function<put_range>(numbers.writer(), count),
                                              by(method, 4));
        numbers.close();
        std::multiset<int> all;
        while (auto some = co_await collected.get()) {
            std::map<int, int> last;
            for (const int value : *some) {
                const auto [at, first] = last.try_emplace(value / count, value);
                CHECK((first || at->second < value));
                at->second = value;
            }
            all.insert(some->begin(), some->end());
        }
        CHECK(all.size() == 4 * count);
        CHECK(std::set<int>(all.begin(), all.end()).size() == 4 * count);
        co_await writers.join();
        co_await readers.join();
    }
}

GROUP_TEST("queue: put_all and get_some carry many values") {
    for (const bool has_capacity : {false, true}) {
        auto numbers = has_capacity ? queue<int>(10) : queue<int>();
        auto group =
            co_await cohort::spawn(cohort::function<put_all_of>(numbers.writer(), 1000), 1);
        numbers.close();
        auto reader = numbers.reader();
        std::vector<int> all;
        for (auto some = reader.get_some(64); !some.empty(); some = reader.get_some(64)) {
            CHECK(some.size() <= 64);
            all.insert(all.end(), some.begin(), some.end());
        }
        std::vector<int> expected(1000);
        std::iota(expected.begin(), expected.end(), 0);
        CHECK(all == expected);
        co_await group.join();
    }
}

METHODS_TEST("queue: the role is enforced in workers as well") {
    for (const auto method : all_methods) {
        queue<int> numbers;
        const auto done =
            co_await cohort::run(cohort::function<put_twice_is_refused>(numbers), by(method));
        CHECK(done.outcomes[0].result<int>() == 1);
    }
}

METHODS_TEST("queue: the stop signal ends a blocked get by the worker's stop token") {
    for (const auto method : all_methods) {
        queue<int> numbers;
        queue<int> answers;
        auto group = co_await cohort::spawn(cohort::function<get_until_stopped>(numbers, answers),
                                            by(method));
        co_await group.stop();
        const auto answer = co_await answers.get();
        if (answer)  // else the signal came before the function began
            CHECK(*answer == 1);
    }
}

}  // namespace queue_test
