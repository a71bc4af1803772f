// SPDX-License-Identifier: BSL-1.0
// Values that a call could not keep are there for others, who may wait for them already.
#include "group_test.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <exception>
#include <fstream>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
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
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit low = before;
    low.rlim_cur = 1;
    ::setrlimit(RLIMIT_NOFILE, &low);
    arrays.writer().put(sent);
    waits.join();
    ::setrlimit(RLIMIT_NOFILE, &before);
    const auto came = arrays.try_get();
    REQUIRE(came);
    CHECK((*came)(0) == 42);
    co_return;
}

}  // namespace queue_lost_test
