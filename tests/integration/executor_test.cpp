// SPDX-License-Identifier: BSL-1.0
// Executors that refuse what they are given, or take their time.
#include "live_support.hpp"

#include <asio/bind_executor.hpp>
#include <asio/execution.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <thread>

namespace {

using namespace cohort_test;

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

TEST_CASE("executor: a completion that is refused comes later") {
    const leak_guard guard;
    const watchdog guarded;
    asio::io_context io;
    gate hold;
    auto group = start_gated(io, hold, 1);
    auto work = asio::make_work_guard(io);  // this executor tracks none
    std::atomic<int> refusals = 3;
    const refusing_executor executor(io, refusals);
    completed<bool> joined;
    completed<std::optional<cohort::outcome>> told;
    group.async_join(asio::bind_executor(executor, joined.into()));
    group.async_next(asio::bind_executor(executor, told.into()));
    hold.open();
    while (!joined.done() || !told.done())
        io.run_one();
    CHECK(joined.take());
    CHECK(told.take()->success());
    CHECK(refusals < 0);
}

/// An executor whose posts do not return before they are let go.
class slow_executor {
public:
    struct state {
        std::promise<void> posted;
        std::promise<void> go;
    };
    slow_executor(asio::thread_pool& pool, state& s) noexcept : pool_(&pool), state_(&s) {}

    asio::execution_context& query(asio::execution::context_t) const noexcept { return *pool_; }
    slow_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
    template <class F>
    void execute(F f) const {
        auto& waits_for = *state_;  // the handler may destroy this executor
        asio::post(*pool_, std::move(f));
        waits_for.posted.set_value();
        waits_for.go.get_future().wait();
    }
    friend bool operator==(const slow_executor&, const slow_executor&) noexcept = default;

private:
    asio::thread_pool* pool_;
    state* state_;
};

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

TEST_CASE("executor: one that refuses the error of an initiating call throws out of that call") {
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
