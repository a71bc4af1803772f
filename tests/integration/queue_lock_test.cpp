// SPDX-License-Identifier: BSL-1.0
// Processes that hold the lock of a queue's socket: in the kernel a receive keeps it while it waits
// for a page of the process, and every other receive from that socket waits for it, MSG_DONTWAIT or
// not.
#include "group_test.hpp"
#include "missing_page.hpp"
#include "raw_queue.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <sys/socket.h>

namespace queue_lock_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::queue;
using cohort::queue_reader;
using cohort::received;

namespace {

/// A get that is awaited.
struct awaited_get {
    std::optional<received<int>> got;

    void begin(queue_reader<int>& from, const asio::any_io_executor& executor) {
        got.reset();
        from.async_get(asio::bind_executor(
            executor, [this](std::exception_ptr, received<int> value) { got = std::move(value); }));
    }
};

asio::awaitable<void> a_moment(const asio::any_io_executor& executor) {
    asio::steady_timer timer(executor, 1ms);
    co_await timer.async_wait(asio::use_awaitable);
}

/// Has a thread hold the lock of the socket, by a packet that it takes.
asio::awaitable<void> await_holder(const missing_page& page, queue<int>& numbers, awaited_get& get,
                                   queue_reader<int>& reader,
                                   const asio::any_io_executor& executor) {
    get.begin(reader, executor);
    co_await numbers.put(1);
    while (!page.is_awaited(0)) {
        if (get.got) {  // the get took the packet
            get.begin(reader, executor);
            co_await numbers.put(1);
        }
        co_await a_moment(executor);
    }
}

}  // namespace

TEST_CASE("queue lock: a socket that another process holds does not hold up the engine") {
    if (!can_miss_pages())
        return;
    const moved_loop_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        queue<int> numbers;
        numbers.keep_both_ends();
        auto reader = numbers.reader();
        const missing_page page;
        const int socket = *cohort::item_to_share(reader).lent.lock();
        std::thread holds([&] { (void)!::recv(socket, page.address(), 4096, 0); });
        awaited_get get;
        co_await await_holder(page, numbers, get, reader, executor);
        co_await numbers.put(2);
        CHECK((co_await cohort::run(cohort::command("true"))).success());
        const auto late = co_await reader.async_get(1ms, asio::use_awaitable);
        CHECK(late.timed_out());
        CHECK(reader.try_get().timed_out());
        CHECK_FALSE(get.got);
        page.come();
        holds.join();
        while (!get.got)
            co_await a_moment(executor);
        CHECK(**get.got == 2);
    }());
}

TEST_CASE("queue lock: packed descriptors that their sender holds cost one value, not the reader") {
    if (!can_miss_pages())
        return;
    const leak_guard guard;
    const watchdog bounded;
    raw_queue<std::string> raw;
    const missing_page page;
    int carrier[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, carrier) == 0);
    REQUIRE(::send(carrier[1], "x", 1, 0) == 1);
    std::thread holds([&] { (void)!::recv(carrier[0], page.address(), 1, 0); });
    while (!page.is_awaited(-1)) {
    }
    send_raw(raw.writer, header_with(1, 300, 1), "x", {carrier[0]});
    send_raw(raw.writer, header_with(1, 0, 4), "good");
    CHECK_THROWS_WITH_AS(raw.reader.get(),
                         doctest::Contains("another process keeps them from being unpacked"),
                         cohort::codec_error);
    CHECK(*raw.reader.get() == "good");
    page.come();
    holds.join();
    ::close(carrier[0]);
    ::close(carrier[1]);
}

}  // namespace queue_lock_test
