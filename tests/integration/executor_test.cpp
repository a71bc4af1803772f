// SPDX-License-Identifier: BSL-1.0
// Executors that refuse what they are given, or take their time.
#include "live_support.hpp"
#include "slow_executor.hpp"

#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/execution.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <thread>

namespace executor_test {

namespace {

using namespace std::chrono_literals;
using namespace cohort::test;

/// An executor that refuses the first posts, as one does that has run out of memory.
class refusing_executor {
public:
    refusing_executor(asio::io_context& io, std::atomic<int>& refusals) noexcept
        : io_(&io), refusals_(&refusals) {}

    asio::execution_context& query(asio::execution::context_t) const noexcept { return *io_; }
    refusing_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
    template <class F>
    void execute(F f) const {
        if (--*refusals_ >= 0)
            throw std::bad_alloc();
        asio::post(*io_, std::move(f));
    }
    friend bool operator==(const refusing_executor&, const refusing_executor&) noexcept = default;

private:
    asio::io_context* io_;
    std::atomic<int>* refusals_;
};

TEST_CASE("executor: a completion whose post throws is posted again later") {
    const leak_guard guard;
    const watchdog guarded;
    asio::io_context io;
    gate hold;
    auto group = start_gated(io, hold, 1);
    auto work = asio::make_work_guard(io);  // this executor tracks none
    std::atomic<int> refusals = 3;
    const refusing_executor executor(io, refusals);
    completed<bool> joined;
    completed<cohort::received<cohort::outcome>> told;
    group.async_join(asio::bind_executor(executor, joined.into()));
    group.async_next(asio::bind_executor(executor, told.into()));
    hold.open();
    while (!joined.done() || !told.done())
        io.run_one();
    CHECK(joined.take());
    CHECK(told.take()->success());
    CHECK(refusals < 0);
}

TEST_CASE(
    "executor: a handler may run while it is being posted, and its context waits for the post") {
    const leak_guard guard;
    const watchdog guarded;
    asio::io_context io;
    gate hold;
    auto group = start_gated(io, hold, 1);
    slow_executor::state state;
    auto pool = std::make_unique<asio::thread_pool>(1);
    std::promise<bool> promise;
    auto joined = promise.get_future();
    group.async_join(
        asio::bind_executor(slow_executor(*pool, state),
                            [promise = std::move(promise)](std::exception_ptr, bool all) mutable {
                                promise.set_value(all);
                            }));
    hold.open();
    CHECK(joined.get());
    state.posted.get_future().wait();
    std::atomic<bool> destroyed = false;
    std::thread destroyer([&] {
        pool.reset();
        destroyed = true;
    });
    // Not a proof that it waits, but it does not go on: the engine is still inside the post.
    for (int i = 0; i < 1000; ++i)
        std::this_thread::yield();
    CHECK_FALSE(destroyed);
    state.go.set_value();
    destroyer.join();
}

/// An executor that calls back whenever it is made or destroyed.
class talkative_executor {
public:
    talkative_executor(asio::io_context& io, const std::function<void()>& tell) noexcept
        : io_(&io), tell_(&tell) {}
    talkative_executor(const talkative_executor& other) noexcept
        : io_(other.io_), tell_(other.tell_) {
        tell();
    }
    talkative_executor& operator=(const talkative_executor&) = delete;
    ~talkative_executor() { tell(); }

    asio::execution_context& query(asio::execution::context_t) const noexcept { return *io_; }
    talkative_executor require(asio::execution::blocking_t::never_t) const { return *this; }
    talkative_executor require(asio::execution::outstanding_work_t::tracked_t) const {
        return *this;
    }
    talkative_executor require(asio::execution::outstanding_work_t::untracked_t) const {
        return *this;
    }
    template <class F>
    void execute(F f) const {
        asio::post(*io_, std::move(f));
    }
    friend bool operator==(const talkative_executor& a, const talkative_executor& b) noexcept {
        return a.io_ == b.io_;
    }

private:
    void tell() const {
        if (*tell_)
            (*tell_)();
    }

    asio::io_context* io_;
    const std::function<void()>* tell_;
};

TEST_CASE("executor: copies of one may start operations, also those that the library makes") {
    const leak_guard guard;
    const watchdog guarded;
    asio::io_context io;
    std::function<void()> tell;
    completed<cohort::group> started;
    cohort::async_spawn(talkative_executor(io, tell), cohort::command("true"), 1, started.into());
    {
        const auto work = asio::make_work_guard(io);  // this executor tracks none
        while (!started.done())
            io.run_one();
    }
    auto group = started.take();
    auto other = start_ready(io, sleeper(), 1);
    std::atomic<int> told = 0;
    tell = [&] {
        ++told;
        other.async_join(0s, [](std::exception_ptr, bool) {});
    };
    // Completes elsewhere, so that the library keeps work for the group's executor meanwhile.
    asio::thread_pool pool(1);
    std::promise<void> joined;
    group.async_join(
        asio::bind_executor(pool, [&](std::exception_ptr, bool) { joined.set_value(); }));
    joined.get_future().get();
    pool.join();
    CHECK(told > 0);
    tell = nullptr;
    run_out(io);
}

TEST_CASE("executor: an executor that refuses an initiating call's error throws out of that call") {
    const leak_guard guard;
    asio::io_context io;
    std::atomic<int> refusals = 1;
    const refusing_executor executor(io, refusals);
    const auto owned = std::make_shared<int>();
    CHECK_THROWS_AS(cohort::group().async_join(asio::bind_executor(
                        executor, [owned](std::exception_ptr, bool) { FAIL("called"); })),
                    std::bad_alloc);
    CHECK(owned.use_count() == 1);
}

}  // namespace

TEST_CASE("executor: run hands over to its executor once, at the end of the group") {
    const leak_guard guard;
    const auto handlers_of = [](asio::awaitable<void> work) {
        const watchdog guarded;
        asio::io_context io;
        asio::co_spawn(io, std::move(work), asio::detached);
        return io.run();
    };
    const auto of_one_post =
        handlers_of([]() -> asio::awaitable<void> { co_await asio::post(asio::use_awaitable); }());
    const auto of_run = handlers_of([]() -> asio::awaitable<void> {
        CHECK((co_await cohort::run(cohort::command("true"), 2)).success());
    }());
    CHECK(of_run == of_one_post);
}

}  // namespace executor_test
