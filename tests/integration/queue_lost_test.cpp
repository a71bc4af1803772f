// SPDX-License-Identifier: BSL-1.0
// Values that a call could not keep are there for others, who may wait for them already.
#include "descriptor_limit.hpp"
#include "group_test.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <fstream>
#include <functional>
#include <semaphore>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace queue_lost_test {

using namespace cohort::test;
using cohort::queue;
using cohort::received;
using cohort::shared_array;

namespace {
std::binary_semaphore is_decoding{0};
std::binary_semaphore may_go_on{0};
}  // namespace

/// Decoding the first one takes until the case goes on; decoding the second one fails.
struct difficult {
    int number = 0;
};
void to_json(nlohmann::json& to, const difficult& from) { to = from.number; }
void from_json(const nlohmann::json& from, difficult& to) {
    to.number = from.get<int>();
    if (to.number == 2)
        throw std::domain_error("the second one");
    is_decoding.release();
    may_go_on.acquire();
}

/// A value with memory, which is refused where its number is negative.
struct choosy {
    int number = 0;
    shared_array<int> memory;
};
void to_json(nlohmann::json& to, const choosy& from) { to = {from.number, from.memory}; }
void from_json(const nlohmann::json& from, choosy& to) {
    from.at(1).get_to(to.memory);
    to.number = from.at(0).get<int>();
    if (to.number == -1)
        throw std::domain_error("refused");
    if (to.number == -2)
        throw to.number;
}

namespace {

/// Returns when a thread sleeps.
void await_sleep(const std::atomic<pid_t>& thread) {
    std::string line;
    do {
        std::this_thread::yield();
        if (thread == 0)
            continue;
        std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
        std::getline(file, line);
    } while (line.find(") S ") == line.npos);
}

/// Checks that the exception of from_json leaves a get as it is.
template <class Get>
void check_refused(Get get) {
    try {
        (void)get();
        FAIL("nothing was thrown");
    } catch (const std::domain_error& error) {
        CHECK(std::string(error.what()) == "refused");
    }
}

/// Takes two values and gives the second one back.
struct taker {
    explicit taker(queue<difficult>& from) {
        auto writer = from.writer();
        writer.put({1});
        writer.put({2});
        thread_ = std::thread(
            [reader = from.reader()]() mutable { CHECK(reader.get_some(2).size() == 1); });
        is_decoding.acquire();
    }
    taker(const taker&) = delete;
    taker& operator=(const taker&) = delete;
    ~taker() { thread_.join(); }

private:
    std::thread thread_;
};

}  // namespace

GROUP_TEST("queue lost: a value that is given back wakes a thread that waits") {
    queue<difficult> values;
    values.keep_both_ends();
    const taker takes(values);
    std::atomic<pid_t> number = 0;
    std::thread waits([&, reader = values.reader()]() mutable {
        number = ::gettid();
        CHECK_THROWS_AS((void)reader.get(), std::domain_error);
    });
    await_sleep(number);
    may_go_on.release();
    waits.join();
    co_return;
}

GROUP_TEST("queue lost: a value that is given back completes a get that is awaited") {
    queue<difficult> values;
    values.keep_both_ends();
    const taker takes(values);
    auto reader = values.reader();
    std::exception_ptr wrong;
    reader.async_get(asio::bind_executor(
        executor, [&](std::exception_ptr e, received<difficult>) { wrong = e; }));
    may_go_on.release();
    while (!wrong)
        co_await asio::post(executor, asio::use_awaitable);
    CHECK_THROWS_AS(std::rethrow_exception(wrong), std::domain_error);
}

GROUP_TEST(
    "queue lost: what a value's own from_json throws leaves each get, and the next value comes") {
    using namespace std::chrono_literals;
    queue<choosy> values;
    values.keep_both_ends();
    auto reader = values.reader();
    const shared_array<int> memory(1000);
    auto put = [writer = values.writer(), memory](int number) mutable {
        writer.put(choosy{number, memory});
    };
    const std::vector<std::function<received<choosy>()>> gets{
        [&] { return reader.get(); },
        [&] { return reader.get(1h); },
        [&] { return reader.get(std::stop_token()); },
        [&] { return reader.try_get(); },
        [&] { return values.try_get(); },
        [&] { return received<choosy>(*reader.begin()); },
    };
    for (const auto& get : gets) {
        put(-1);
        put(-2);
        put(7);
        check_refused(get);
        CHECK_THROWS_AS((void)get(), int);
        CHECK(get()->number == 7);
    }
    for (const bool has_timeout : {false, true}) {
        put(-1);
        put(7);
        std::exception_ptr wrong;
        try {
            if (has_timeout)
                (void)co_await values.get(1h);
            else
                (void)co_await values.get();
        } catch (...) {
            wrong = std::current_exception();
        }
        check_refused([&] { std::rethrow_exception(wrong); });
        CHECK((co_await values.get())->number == 7);
    }
    for (const int number : {7, -1, 8})
        put(number);
    CHECK(reader.get_some(3).size() == 1);
    check_refused([&] { return reader.get_some(3); });
    CHECK(reader.get_some(3).at(0).number == 8);
}

GROUP_TEST("queue lost: a value stays if descriptors run short while a thread waits for it") {
    queue<shared_array<int>> arrays;
    arrays.keep_both_ends();
    const shared_array<int> sent(1);
    sent(0) = 42;
    std::atomic<pid_t> number = 0;
    std::thread waits([&, reader = arrays.reader()]() mutable {
        number = ::gettid();
        CHECK_THROWS_AS((void)reader.get(), cohort::sharing_error);
    });
    await_sleep(number);
    {
        const descriptor_limit none(1);
        arrays.writer().put(sent);
        waits.join();
    }
    const auto came = arrays.try_get();
    REQUIRE(came);
    CHECK((*came)(0) == 42);
    co_return;
}

}  // namespace queue_lost_test
