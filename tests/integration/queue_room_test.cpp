// SPDX-License-Identifier: BSL-1.0
// What waits and values cost: time, wake-ups, memory, watches.
#include "group_test.hpp"
#include "system_call_filter.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <ranges>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace queue_room_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::queue;
using cohort::received;

namespace {

/// How often a call goes to sleep.
template <class Call>
long sleeps_of(const Call& call) {
    long count = 0;
    std::thread([&] {
        rusage before{};
        rusage after{};
        ::getrusage(RUSAGE_THREAD, &before);
        call();
        ::getrusage(RUSAGE_THREAD, &after);
        count = after.ru_nvcsw - before.ru_nvcsw;
    }).join();
    return count;
}

/// Gets a value after the objects of the main thread were destroyed.
struct gets_at_exit {
    queue<std::vector<std::string>> values;
    ~gets_at_exit() {
        try {
            const auto got = values.try_get();
            ::_exit(got && got->size() == 3 ? 0 : 1);
        } catch (...) {
            ::_exit(2);
        }
    }
};

}  // namespace

GROUP_TEST("queue room: the time of a large put is not used up while its value is written") {
    queue<std::string> texts(1);
    texts.keep_both_ends();
    const std::string large(8 << 20, 'x');
    CHECK(co_await texts.put(large, 0ms));
    CHECK_FALSE(co_await texts.put(large, 0ms));
    CHECK_FALSE(co_await texts.put(large, 1ms));
    CHECK((*co_await texts.get() == large));
    CHECK(co_await texts.put(large, 0ms));
}

TEST_CASE("queue room: put_all takes values out of its range as it puts them") {
    const leak_guard guard;
    static constexpr int all = 2'000;
    queue<int> numbers(4);
    auto reader = numbers.reader();
    std::atomic<int> made = 0;
    std::thread puts([&made, writer = numbers.writer()]() mutable {
        writer.put_all(std::views::iota(0, all) | std::views::transform([&made](int i) {
                           ++made;
                           return i;
                       }));
    });
    CHECK(*reader.get() == 0);
    CHECK(made <= 200);
    for (int i = 1; i < all; ++i)
        CHECK(*reader.get() == i);
    puts.join();
}

TEST_CASE("queue room: a get with a timeout or a stop sleeps until one of them comes") {
    const leak_guard guard;
    queue<int> numbers;
    auto reader = numbers.reader();
    CHECK(sleeps_of([&] { CHECK(reader.get(1s).timed_out()); }) <= 5);
    std::stop_source source;
    std::thread stops([&source] {
        queue<int> none;
        CHECK(none.reader().get(1s).timed_out());
        source.request_stop();
    });
    CHECK(sleeps_of([&] { CHECK(reader.get(source.get_token()).stopped()); }) <= 5);
    stops.join();
}

TEST_CASE("queue room: a get in a static destructor receives") {
    const leak_guard guard;
    const pid_t copy = ::fork();
    if (copy == 0) {
        static gets_at_exit last;
        last.values.keep_both_ends();
        for (int i = 0; i < 2; ++i)
            last.values.writer().put({"a", "b", "c"});
        (void)last.values.try_get();
        std::exit(3);
    }
    int status = -1;
    REQUIRE(::waitpid(copy, &status, 0) == copy);
    CHECK(status == 0);
}

TEST_CASE("queue room: where epoll has no room for a watch, an awaited get waits all the same") {
    const leak_guard guard;
    const watchdog bounded;
    queue<int> numbers;
    numbers.keep_both_ends();
    asio::io_context io;
    auto stays = asio::make_work_guard(io);
    bool allowed = false;
    int got = 0;
    std::thread([&] {
        allowed = deny(SYS_epoll_ctl, ENOSPC);
        if (allowed)
            numbers.async_get(asio::bind_executor(
                io.get_executor(), [&](std::exception_ptr error, const received<int>& value) {
                    if (!error)
                        got = *value;
                    stays.reset();
                }));
    }).join();
    if (!allowed) {
        MESSAGE("skipped: this machine does not allow seccomp filters");
        return;
    }
    numbers.writer().put(7);
    io.run();
    CHECK(got == 7);
}

}  // namespace queue_room_test
